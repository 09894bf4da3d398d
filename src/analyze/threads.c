/* Threads with what each used, sampled and as the kernel counted; see report.h. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

enum { VALUE, PERCENT, COUNTED, SAMPLES, TID, NAME, PROCESS, PID, START, END, COLUMNS };

static struct ranked *rank_threads(const struct report *r, size_t *count)
{
    const struct selection *s = r->selection;
    const struct profile *p = s->profile;
    struct ranked *all = memory_array(p->threads.len + 1, sizeof *all);
    for (uint32_t i = 0; i < p->threads.len; i++)
        all[i] = (struct ranked){.id = i, .name = profile_text(p, p->threads.data[i].name)};
    size_t cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(s, &cursor));) {
        struct cost *cost = &all[c->thread].cost;
        cost->self += c->value;
        cost->self_count += c->count;
    }
    *count = 0;
    for (size_t i = 0; i < p->threads.len; i++)
        if (s->thread[i])
            all[(*count)++] = all[i];
    rank(all, *count, r->sort);
    return all;
}

uint64_t report_counted(const struct report *r, uint32_t thread)
{
    return r->from || r->to ? 0 : r->selection->profile->threads.data[thread].cpu;
}

static void put_thread(struct view_section *s, const struct report *r, const struct ranked *at)
{
    const struct profile *p = r->selection->profile;
    const struct profile_thread *t = &p->threads.data[at->id];
    const struct profile_process *q = &p->processes.data[t->process];
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[VALUE] = view_number(at->cost.self);
    row[PERCENT] = view_percent(at->cost.self, r->selection->value);
    row[COUNTED] = view_nonzero(report_counted(r, at->id));
    row[SAMPLES] = view_number(at->cost.self_count);
    row[TID] = view_number((uint64_t)t->tid);
    row[NAME] = view_text(s, *at->name ? at->name : "?");
    row[PID] = view_number((uint64_t)q->pid);
    if (t->start >= p->start)
        row[START] = view_number(t->start - p->start);
    if (t->ended && t->end >= p->start)
        row[END] = view_number(t->end - p->start);
    struct text process = TEXT_INIT;
    text_format(&process, "%d %s", q->pid, profile_process_name(p, t->process));
    row[PROCESS] = view_text(s, process.data);
    text_release(&process);
}

static void put_rest(struct view_section *s, const struct report *r, const struct ranked *all,
                     size_t shown, size_t count)
{
    if (shown == count)
        return;
    uint64_t value = 0, samples = 0, counted = 0;
    for (size_t i = shown; i < count; i++) {
        value += all[i].cost.self;
        samples += all[i].cost.self_count;
        counted += report_counted(r, all[i].id);
    }
    char name[64];
    snprintf(name, sizeof name, "… %zu more threads", count - shown);
    struct view_value *row = view_row(s, 0, VIEW_REST);
    row[VALUE] = view_number(value);
    row[PERCENT] = view_percent(value, r->selection->value);
    row[COUNTED] = view_nonzero(counted);
    row[SAMPLES] = view_number(samples);
    row[NAME] = view_text(s, name);
    s->omitted = count - shown;
}

void report_threads(struct view *v, const struct report *r)
{
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"self", r->selection->label.data, report_kind(r)},
        [PERCENT] = {"self_percent", "%", VIEW_PERCENT, .bar = true},
        [COUNTED] = {"cpu_counted", "by kernel", VIEW_DURATION},
        [SAMPLES] = {"self_samples", selection_noun(r->selection), VIEW_COUNT, report_counts(r, 0)},
        [TID] = {"tid", "tid", VIEW_NUMBER},
        [NAME] = {"name", "thread", VIEW_TEXT},
        [PROCESS] = {"process", "process", VIEW_TEXT},
        [PID] = {"pid", "pid", VIEW_NUMBER, VIEW_MACHINES},
        [START] = {"start", "start", VIEW_DURATION, 120},
        [END] = {"end", "end", VIEW_DURATION, 120},
    };
    report_begin(v, r, "threads", "threads", "threads");
    struct view_section *s = view_add_table(v, "threads", "Threads", columns, COLUMNS);
    size_t count;
    struct ranked *all = rank_threads(r, &count);
    size_t shown = report_shown(r, count);
    for (size_t i = 0; i < shown; i++)
        put_thread(s, r, &all[i]);
    put_rest(s, r, all, shown, count);
    free(all);
}
