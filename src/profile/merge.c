/* Several profiles as one; see merge.h. */
#include "profile/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SAME_CLOCK 1000000000ll /* ns: wall clocks of one boot differ by less */

struct merge {
    struct profile *into;
    const struct profile *from;
    int64_t shift; /* added to times */
    uint32_t *processes, *threads, *modules, *functions, *frames, *stacks, *events;
    uint32_t left_out; /* event of `from` whose cells are not taken; PROFILE_NONE: none */
};

static uint32_t translate(const uint32_t *ids, size_t len, uint32_t index)
{
    return index < len ? ids[index] : PROFILE_NONE;
}

static uint32_t string(struct merge *m, uint32_t s)
{
    return profile_string(m->into, profile_text(m->from, s));
}

static uint64_t moved(const struct merge *m, uint64_t time)
{
    return time ? time + (uint64_t)m->shift : 0;
}

static int check_units(const struct profile *into, const struct profile *from, struct error *err)
{
    for (size_t i = 0; i < from->events.len; i++) {
        const struct profile_event *e = &from->events.data[i];
        const char *name = profile_text(from, e->name);
        uint32_t known = profile_event_find(into, name);
        if (known != PROFILE_NONE && into->events.data[known].unit != e->unit)
            return error_set(err, FAULT_INPUT,
                             "the event '%s' is counted in different units in these profiles, "
                             "so they cannot be added up",
                             name);
    }
    return 0;
}

static void merge_events(struct merge *m)
{
    for (size_t i = 0; i < m->from->events.len; i++) {
        const struct profile_event *e = &m->from->events.data[i];
        uint32_t id =
            profile_event_add(m->into, profile_text(m->from, e->name), e->unit, e->period);
        if (m->into->events.data[id].period != e->period)
            m->into->events.data[id].period = 0;
        m->events[i] = id;
    }
}

static void merge_who(struct merge *m)
{
    for (size_t i = 0; i < m->from->processes.len; i++) {
        const struct profile_process *q = &m->from->processes.data[i];
        uint32_t parent = q->parent < i ? m->processes[q->parent] : PROFILE_NONE;
        uint32_t id = profile_process_add(m->into, q->pid, parent, moved(m, q->start));
        m->processes[i] = id;
        for (size_t k = 0; k < q->execs.len; k++) {
            const struct profile_exec *e = &q->execs.data[k];
            struct profile_exec copy = {moved(m, e->time), string(m, e->comm), string(m, e->exe),
                                        string(m, e->arguments)};
            *vector_push(&m->into->processes.data[id].execs) = copy;
        }
        struct profile_process *to = &m->into->processes.data[id];
        to->end = moved(m, q->end);
        to->ended = q->ended;
        to->status_known = q->status_known;
        to->status = q->status;
        to->max_rss = q->max_rss;
    }
    for (size_t i = 0; i < m->from->threads.len; i++) {
        const struct profile_thread *t = &m->from->threads.data[i];
        uint32_t id = profile_thread_add(m->into, m->processes[t->process], t->tid,
                                         profile_text(m->from, t->name), moved(m, t->start));
        m->into->threads.data[id].end = moved(m, t->end);
        m->into->threads.data[id].cpu = t->cpu;
        m->into->threads.data[id].ended = t->ended;
        m->threads[i] = id;
    }
}

static void merge_modules(struct merge *m)
{
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->modules.len; i++) {
        const struct profile_module *x = &from->modules.data[i];
        uint32_t id = profile_module_add(m->into, x->kind, profile_text(from, x->path), x->build_id,
                                         x->build_id_len);
        if (!m->into->modules.data[id].note)
            m->into->modules.data[id].note = string(m, x->note);
        m->modules[i] = id;
    }
    for (size_t i = 0; i < from->mappings.len; i++) {
        struct profile_mapping x = from->mappings.data[i];
        x.process = m->processes[x.process];
        x.module = m->modules[x.module];
        x.time = moved(m, x.time);
        *vector_push(&m->into->mappings) = x;
    }
}

/* Symbols of the first profile stand; those of the second fill what has none. */
static uint32_t merge_frame(struct merge *m, uint32_t frame)
{
    const struct profile *from = m->from;
    const struct profile_frame *f = &from->frames.data[frame];
    const struct profile_location *at = from->locations.data + f->first_location;
    if (profile_frame_is_named(from, frame))
        return profile_frame_named(m->into, m->modules[f->module], m->functions[at->function],
                                   at->line);
    uint32_t id = profile_frame_add(m->into, m->modules[f->module], f->address);
    if (m->into->frames.data[id].location_count || !f->location_count)
        return id;
    struct profile_location *copy = memory_array(f->location_count, sizeof *copy);
    for (uint32_t i = 0; i < f->location_count; i++)
        copy[i] = (struct profile_location){m->functions[at[i].function], at[i].line};
    profile_frame_locate(m->into, id, copy, f->location_count);
    free(copy);
    return id;
}

static void merge_code(struct merge *m)
{
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->functions.len; i++) {
        const struct profile_function *f = &from->functions.data[i];
        m->functions[i] = profile_function_add(m->into, profile_text(from, f->name),
                                               profile_text(from, f->linkage),
                                               profile_text(from, f->file), f->start_line,
                                               translate(m->modules, from->modules.len, f->module));
    }
    for (uint32_t i = 0; i < from->frames.len; i++)
        m->frames[i] = merge_frame(m, i);
    for (size_t i = 1; i < from->stacks.len; i++)
        m->stacks[i] = profile_stack_add(m->into, m->stacks[from->stacks.data[i].parent],
                                         m->frames[from->stacks.data[i].frame]);
}

/* What stands apart in one stands apart in both; else the cells have it already. */
static int merge_samples(struct merge *m, struct error *err)
{
    struct samples_cursor c;
    struct profile_sample s;
    samples_begin(&c, &m->from->samples, SAMPLES_ALL, SAMPLES_ALL);
    while (samples_next(&c, &s)) {
        s.time = moved(m, s.time);
        s.event = m->events[s.event];
        s.thread = m->threads[s.thread];
        s.stack = m->stacks[s.stack];
        if (m->from->samples_apart)
            profile_sample_add(m->into, &s);
        else
            samples_add(&m->into->samples, &s);
    }
    return samples_end(&c, err);
}

static uint64_t tree_peak(const struct profile *p)
{
    const char *text = profile_meta_get(p, "heap_tree_peak");
    return text ? strtoull(text, NULL, 10) : 0;
}

static void forget_cells(struct profile *p, uint32_t event)
{
    p->events.data[event].samples = p->events.data[event].value = 0;
    for (size_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == event)
            p->cells.data[i].count = p->cells.data[i].value = 0;
}

/* Two trees were at their peaks at two times, which cannot be added up: the higher one stays. */
static void merge_tree_peak(struct merge *m)
{
    uint32_t event = profile_event_find(m->from, "heap:tree-peak");
    const char *time = profile_meta_get(m->from, "heap_tree_peak_time");
    m->left_out = PROFILE_NONE;
    if (event == PROFILE_NONE || !time || !tree_peak(m->from))
        return;
    if (tree_peak(m->from) <= tree_peak(m->into)) {
        m->left_out = event;
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, moved(m, strtoull(time, NULL, 10)));
    profile_meta_set(m->into, "heap_tree_peak_time", text);
    profile_meta_set(m->into, "heap_tree_peak", profile_meta_get(m->from, "heap_tree_peak"));
    forget_cells(m->into, m->events[event]);
}

static int merge_values(struct merge *m, struct error *err)
{
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->cells.len; i++) {
        const struct profile_cell *c = &from->cells.data[i];
        if (c->event == m->left_out)
            continue;
        profile_count(m->into, m->events[c->event], m->threads[c->thread], m->stacks[c->stack],
                      c->count, c->value);
    }
    return merge_samples(m, err);
}

static void merge_spans(struct merge *m)
{
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->spans.len; i++) {
        struct profile_span s = from->spans.data[i];
        s.time = moved(m, s.time);
        s.end = moved(m, s.end);
        s.thread = m->threads[s.thread];
        s.frame = m->frames[s.frame];
        *vector_push(&m->into->spans) = s;
    }
    m->into->span_count += from->span_count;
}

static void merge_series(struct merge *m)
{
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->series.len; i++) {
        const struct profile_series *s = &from->series.data[i];
        struct profile_series copy = {.name = string(m, s->name),
                                      .process =
                                          translate(m->processes, from->processes.len, s->process),
                                      .thread = translate(m->threads, from->threads.len, s->thread),
                                      .unit = s->unit};
        for (size_t k = 0; k < s->points.len; k++)
            *vector_push(&copy.points) =
                (struct profile_point){moved(m, s->points.data[k].time), s->points.data[k].value};
        *vector_push(&m->into->series) = copy;
    }
}

static void merge_account(struct merge *m)
{
    struct profile *into = m->into;
    const struct profile *from = m->from;
    for (size_t i = 0; i < from->losses.len; i++) {
        struct profile_loss l = from->losses.data[i];
        l.event = translate(m->events, from->events.len, l.event);
        l.thread = translate(m->threads, from->threads.len, l.thread);
        *vector_push(&into->losses) = l;
    }
    for (size_t i = 0; i < from->heaps.len; i++) {
        struct profile_heap h = from->heaps.data[i];
        h.process = translate(m->processes, from->processes.len, h.process);
        h.time = moved(m, h.time);
        h.peak_time = moved(m, h.peak_time);
        *vector_push(&into->heaps) = h;
    }
    for (size_t i = 0; i < from->details.len; i++) {
        struct profile_detail d = from->details.data[i];
        d.thread = m->threads[d.thread];
        d.stack = m->stacks[d.stack];
        if (d.kind == DETAIL_RELEASED)
            d.key = m->threads[d.key];
        else if (d.kind != DETAIL_SIZE)
            d.key = moved(m, d.key);
        *vector_push(&into->details) = d;
    }
    for (size_t i = 0; i < from->notes.len; i++) {
        uint32_t text = string(m, from->notes.data[i].text);
        *vector_push(&into->notes) = (struct profile_note){
            .level = from->notes.data[i].level, .text = text, .damage = from->notes.data[i].damage};
    }
    for (size_t i = 0; i < from->marks.len; i++)
        *vector_push(&into->marks) = (struct profile_mark){moved(m, from->marks.data[i].time),
                                                           string(m, from->marks.data[i].text)};
    for (size_t i = 0; i < from->meta.len; i++) {
        const char *key = profile_text(from, from->meta.data[i].key);
        if (!profile_meta_get(into, key))
            profile_meta_set(into, key, profile_text(from, from->meta.data[i].value));
    }
    into->cost.collector_cpu += from->cost.collector_cpu;
    if (into->cost.collector_rss < from->cost.collector_rss)
        into->cost.collector_rss = from->cost.collector_rss;
    into->cost.target_extra += from->cost.target_extra;
    into->cost.stacks_whole += from->cost.stacks_whole;
    into->cost.stacks_cut += from->cost.stacks_cut;
    into->cost.bytes_written += from->cost.bytes_written;
}

/* How far the clock of `from` is behind that of `into`, going by the wall clock. */
static int64_t clock_shift(const struct profile *into, const struct profile *from)
{
    if (!into->wall_start || !from->wall_start)
        return 0;
    int64_t shift = (int64_t)((from->wall_start - from->start) - (into->wall_start - into->start));
    return llabs(shift) < SAME_CLOCK ? 0 : shift;
}

static void merge_times(struct merge *m)
{
    struct profile *into = m->into;
    uint64_t start = moved(m, m->from->start), end = moved(m, m->from->end);
    if (!into->start || (start && start < into->start)) {
        into->start = start;
        into->wall_start = m->from->wall_start;
    }
    if (end > into->end)
        into->end = end;
    into->complete &= m->from->complete;
    into->symbolized |= m->from->symbolized;
}

int profile_merge(struct profile *into, const struct profile *from, struct error *err)
{
    struct merge m = {.into = into, .from = from, .shift = clock_shift(into, from)};
    int rc = check_units(into, from, err);
    if (rc)
        return rc;
    struct {
        uint32_t **ids;
        size_t len;
    } tables[] = {{&m.processes, from->processes.len}, {&m.threads, from->threads.len},
                  {&m.modules, from->modules.len},     {&m.functions, from->functions.len},
                  {&m.frames, from->frames.len},       {&m.stacks, from->stacks.len},
                  {&m.events, from->events.len}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i].ids = memory_array(tables[i].len + 1, sizeof(uint32_t));
    merge_times(&m);
    merge_events(&m);
    merge_who(&m);
    merge_modules(&m);
    merge_code(&m);
    merge_tree_peak(&m);
    rc = merge_values(&m, err);
    merge_spans(&m);
    merge_series(&m);
    merge_account(&m);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(*tables[i].ids);
    return rc;
}
