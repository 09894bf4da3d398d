/* Writing a profile as a recording; see save.h. */
#include "recording/save.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "recording/save_spans.h"

/* The writer's identifiers, by index in the profile. */
struct saver {
    const struct profile *p;
    struct writer *w;
    uint32_t *processes, *threads, *modules, *functions, *frames, *stacks, *events;
};

static uint32_t *table(size_t len)
{
    return memory_array(len + 1, sizeof(uint32_t));
}

static uint32_t translate(const uint32_t *ids, size_t len, uint32_t index)
{
    return index < len ? ids[index] : WRITER_NONE;
}

static void save_meta(struct saver *s)
{
    const struct profile *p = s->p;
    char number[24];
    for (size_t i = 0; i < p->meta.len; i++) {
        const char *key = profile_text(p, p->meta.data[i].key);
        if (strcmp(key, "start") && strcmp(key, "wall_start"))
            writer_meta(s->w, key, profile_text(p, p->meta.data[i].value));
    }
    snprintf(number, sizeof number, "%" PRIu64, p->start);
    writer_meta(s->w, "start", number);
    snprintf(number, sizeof number, "%" PRIu64, p->wall_start);
    if (p->wall_start)
        writer_meta(s->w, "wall_start", number);
    for (size_t i = 0; i < p->notes.len; i++)
        writer_note(s->w, p->notes.data[i].level, profile_text(p, p->notes.data[i].text));
    for (size_t i = 0; i < p->marks.len; i++)
        writer_mark(s->w, p->marks.data[i].time, profile_text(p, p->marks.data[i].text));
}

static void save_process(struct saver *s, size_t i)
{
    const struct profile *p = s->p;
    const struct profile_process *q = &p->processes.data[i];
    uint32_t parent = q->parent < i ? s->processes[q->parent] : WRITER_NONE;
    uint32_t id = s->processes[i] = writer_process(s->w, q->pid, parent, q->start);
    for (size_t k = 0; k < q->execs.len; k++) {
        const struct profile_exec *e = &q->execs.data[k];
        writer_exec(s->w, id, e->time, profile_text(p, e->comm), profile_text(p, e->exe),
                    profile_text(p, e->arguments));
    }
    if (q->ended)
        writer_process_end(s->w, id, q->end, q->status_known ? q->status : -1, q->max_rss);
}

static void save_who(struct saver *s)
{
    const struct profile *p = s->p;
    s->processes = table(p->processes.len);
    s->threads = table(p->threads.len);
    for (size_t i = 0; i < p->processes.len; i++)
        save_process(s, i);
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.data[i];
        uint32_t id = writer_thread(s->w, s->processes[t->process], t->tid, t->start);
        s->threads[i] = id;
        if (t->name)
            writer_thread_name(s->w, id, profile_text(p, t->name));
        if (t->ended)
            writer_thread_end(s->w, id, t->end, t->cpu);
    }
}

static void save_symbol(struct saver *s, uint32_t frame)
{
    const struct profile *p = s->p;
    const struct profile_frame *f = &p->frames.data[frame];
    struct writer_location *at = memory_array(f->location_count + 1, sizeof *at);
    for (uint32_t i = 0; i < f->location_count; i++) {
        const struct profile_location *l = &p->locations.data[f->first_location + i];
        at[i] = (struct writer_location){s->functions[l->function], l->line};
    }
    writer_symbol(s->w, s->frames[frame], at, f->location_count);
    free(at);
}

static void save_modules(struct saver *s)
{
    const struct profile *p = s->p;
    s->modules = table(p->modules.len);
    for (size_t i = 0; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        s->modules[i] =
            writer_module(s->w, m->kind, profile_text(p, m->path), m->build_id, m->build_id_len);
        if (m->note)
            writer_module_note(s->w, s->modules[i], profile_text(p, m->note));
    }
    for (size_t i = 0; i < p->mappings.len; i++) {
        const struct profile_mapping *m = &p->mappings.data[i];
        writer_mapping(s->w, s->processes[m->process], s->modules[m->module], m->start, m->end,
                       m->offset, m->time);
    }
}

static void save_code(struct saver *s)
{
    const struct profile *p = s->p;
    s->functions = table(p->functions.len);
    s->frames = table(p->frames.len);
    s->stacks = table(p->stacks.len);
    for (size_t i = 0; i < p->functions.len; i++) {
        const struct profile_function *f = &p->functions.data[i];
        s->functions[i] = writer_function(
            s->w, profile_text(p, f->name), profile_text(p, f->linkage), profile_text(p, f->file),
            f->start_line, translate(s->modules, p->modules.len, f->module));
    }
    for (uint32_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        if (profile_frame_is_named(p, i)) {
            const struct profile_location *at = &p->locations.data[f->first_location];
            s->frames[i] = writer_frame_named(s->w, s->modules[f->module],
                                              s->functions[at->function], at->line);
        } else {
            s->frames[i] = writer_frame(s->w, s->modules[f->module], f->address);
        }
    }
    for (uint32_t i = 1; i < p->stacks.len; i++)
        s->stacks[i] = writer_stack_new(s->w, s->stacks[p->stacks.data[i].parent],
                                        s->frames[p->stacks.data[i].frame]);
    for (uint32_t i = 0; i < p->frames.len; i++)
        if (p->frames.data[i].location_count && !profile_frame_is_named(p, i))
            save_symbol(s, i);
}

/* Takes a sample out of its cell's sums, if they hold it. */
static bool subtract(const struct profile *p, struct profile_cell *left,
                     const struct profile_sample *x)
{
    uint32_t at = profile_cell_find(p, x->event, x->thread, x->stack);
    struct profile_cell *c = at == PROFILE_NONE ? NULL : &left[at];
    if (!c || !c->count || c->value < x->value)
        return false;
    c->count--;
    c->value -= x->value;
    return true;
}

/* Samples as they are, then what the cells hold beyond them. */
static int save_values(struct saver *s, struct error *err)
{
    const struct profile *p = s->p;
    struct profile_cell *left = memory_array(p->cells.len + 1, sizeof *left);
    struct samples_cursor c;
    struct profile_sample x;
    bool sane = true;
    if (p->cells.len)
        memcpy(left, p->cells.data, p->cells.len * sizeof *left);
    samples_begin(&c, &p->samples, SAMPLES_ALL, SAMPLES_ALL);
    while (sane && samples_next(&c, &x)) {
        sane = p->samples_apart || subtract(p, left, &x);
        writer_sample(s->w, s->events[x.event], x.time, s->threads[x.thread], s->stacks[x.stack],
                      x.value);
    }
    int rc = samples_end(&c, err);
    if (!rc && !sane)
        rc = error_set(err, FAULT_LIMIT, "the profile's samples and sums contradict each other");
    for (size_t i = 0; i < p->cells.len && !rc; i++)
        if (left[i].count || left[i].value)
            writer_cell(s->w, s->events[left[i].event], s->threads[left[i].thread],
                        s->stacks[left[i].stack], left[i].count, left[i].value);
    free(left);
    return rc;
}

static void save_series(struct saver *s)
{
    const struct profile *p = s->p;
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *c = &p->series.data[i];
        uint32_t id = writer_series(s->w, profile_text(p, c->name), c->unit,
                                    translate(s->processes, p->processes.len, c->process),
                                    translate(s->threads, p->threads.len, c->thread));
        for (size_t k = 0; k < c->points.len; k++)
            writer_point(s->w, id, c->points.data[k].time, c->points.data[k].value);
    }
}

static void save_account(struct saver *s)
{
    const struct profile *p = s->p;
    for (size_t i = 0; i < p->losses.len; i++) {
        const struct profile_loss *l = &p->losses.data[i];
        writer_loss(s->w, l->reason, translate(s->events, p->events.len, l->event),
                    translate(s->threads, p->threads.len, l->thread), l->count);
    }
    for (size_t i = 0; i < p->heaps.len; i++) {
        const struct profile_heap *h = &p->heaps.data[i];
        writer_heap(s->w, translate(s->processes, p->processes.len, h->process),
                    &(struct writer_heap){.time = h->time,
                                          .peak = h->peak,
                                          .peak_time = h->peak_time,
                                          .live = h->live,
                                          .live_blocks = h->live_blocks,
                                          .allocations = h->allocations,
                                          .lost = h->lost,
                                          .frees = h->frees,
                                          .unknown_frees = h->unknown_frees});
    }
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        writer_detail(s->w, &(struct writer_detail){
                                .kind = d->kind,
                                .thread = s->threads[d->thread],
                                .stack = s->stacks[d->stack],
                                .key = d->kind == DETAIL_RELEASED ? s->threads[d->key] : d->key,
                                .count = d->count,
                                .value = d->value});
    }
    const struct profile_cost *k = &p->cost;
    writer_set_cost(s->w, &(struct writer_cost){.collector_cpu = k->collector_cpu,
                                                .collector_rss = k->collector_rss,
                                                .target_extra = k->target_extra,
                                                .stacks_whole = k->stacks_whole,
                                                .stacks_cut = k->stacks_cut});
}

int recording_save(const struct profile *p, struct writer *w, struct error *err)
{
    struct saver s = {.p = p, .w = w};
    s.events = table(p->events.len);
    save_meta(&s);
    for (size_t i = 0; i < p->events.len; i++) {
        const struct profile_event *e = &p->events.data[i];
        s.events[i] = writer_event(w, profile_text(p, e->name), e->unit, e->period);
    }
    save_who(&s);
    save_modules(&s);
    save_code(&s);
    int rc = save_values(&s, err);
    save_spans(p, w, s.threads, s.frames);
    save_series(&s);
    save_account(&s);
    uint32_t *all[] = {s.processes, s.threads, s.modules, s.functions,
                       s.frames,    s.stacks,  s.events};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return rc ? rc : writer_flush(w, err);
}
