/* What each thread holds over time, and what it did in all; see heap.h. */
#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

#define CURVE 32 /* steps of a curve that stands in a table */

enum { HIGHEST, AT, LIVE, ALLOCATED, CALLS, OVER_TIME, NAME, PROCESS, TID, PID, COLUMNS };

struct thread_sums {
    uint64_t allocated, calls, live;
    const struct profile_series *curve;
};

static void add_cells(const struct report *r, const char *event, struct thread_sums *sums)
{
    struct heap_part part;
    size_t cursor = 0;
    bool live = !strcmp(event, "heap:live");
    heap_part_init(&part, r, event);
    for (const struct profile_cell *c; (c = selection_next(&part.selection, &cursor));) {
        struct thread_sums *t = &sums[c->thread];
        *(live ? &t->live : &t->allocated) += c->value;
        t->calls += live ? 0 : c->count;
    }
    heap_part_release(&part);
}

static struct thread_sums *sums_make(const struct report *r)
{
    const struct profile *p = r->selection->profile;
    struct thread_sums *sums = memory_array(p->threads.len + 1, sizeof *sums);
    add_cells(r, "heap:allocated", sums);
    add_cells(r, "heap:live", sums);
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        if (s->thread < p->threads.len && s->points.len &&
            !strcmp(profile_text(p, s->name), "heap"))
            sums[s->thread].curve = s;
    }
    return sums;
}

/* The highest of each step, in eighths of `top`; a curve holds its value until the next point. */
static void curve_text(const struct profile *p, const struct profile_series *s, int64_t top,
                       struct text *out)
{
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t length = p->end > p->start ? p->end - p->start : 1;
    size_t at = 0;
    int64_t now = 0;
    for (uint64_t step = 0; step < CURVE; step++) {
        uint64_t until = p->start + length / CURVE * (step + 1);
        int64_t most = now;
        for (; at < s->points.len && (s->points.data[at].time <= until || step + 1 == CURVE);
             at++) {
            now = s->points.data[at].value;
            most = now > most ? now : most;
        }
        int64_t level = top > 0 && most > 0 ? (most * 8 + top - 1) / top : 0;
        text_add(out, eighths[level > 8 ? 8 : level]);
    }
}

static void put_thread(struct view_section *s, const struct profile *p, uint32_t thread,
                       const struct thread_sums *t, int64_t top)
{
    const struct profile_thread *q = &p->threads.data[thread];
    const struct profile_point *most = t->curve ? heap_highest(t->curve) : NULL;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    struct text text = TEXT_INIT;
    if (most) {
        row[HIGHEST] = view_number((uint64_t)most->value);
        row[AT] = view_number(heap_time(p, most->time));
        curve_text(p, t->curve, top, &text);
        row[OVER_TIME] = view_text(s, text.data);
    }
    row[LIVE] = view_number(t->live);
    row[ALLOCATED] = view_number(t->allocated);
    row[CALLS] = view_number(t->calls);
    const char *name = profile_text(p, q->name);
    row[NAME] = view_text(s, *name ? name : "?");
    row[TID] = view_number((uint64_t)q->tid);
    row[PID] = view_number((uint64_t)p->processes.data[q->process].pid);
    text_clear(&text);
    process_text(p, q->process, &text);
    row[PROCESS] = view_text(s, text.data);
    text_release(&text);
}

void report_heap_threads(struct view *v, const struct report *r)
{
    const struct view_column columns[COLUMNS] = {
        [HIGHEST] = {"highest", "highest", VIEW_BYTES},
        [AT] = {"highest_time", "at", VIEW_DURATION, 72},
        [LIVE] = {"live", "live", VIEW_BYTES},
        [ALLOCATED] = {"allocated", "allocated", VIEW_BYTES},
        [CALLS] = {"allocations", "allocations", VIEW_COUNT, 110},
        [OVER_TIME] = {"curve", "held over time", VIEW_TEXT, 84},
        [NAME] = {"name", "thread", VIEW_TEXT},
        [PROCESS] = {"process", "process", VIEW_TEXT, .fill = true},
        [TID] = {"tid", "tid", VIEW_NUMBER, VIEW_MACHINES},
        [PID] = {"pid", "pid", VIEW_NUMBER, VIEW_MACHINES},
    };
    const struct profile *p = r->selection->profile;
    struct thread_sums *sums = sums_make(r);
    struct ranked *all = memory_array(p->threads.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct profile_series *curve = sums[i].curve;
        const struct profile_point *most = curve ? heap_highest(curve) : NULL;
        uint64_t value = most && most->value > 0 ? (uint64_t)most->value : 0;
        if (r->selection->thread[i] && (sums[i].calls || most))
            all[count++] = (struct ranked){.id = i, .name = "", .cost = {.self = value}};
    }
    rank(all, count, REPORT_BY_SELF);
    struct heap_part total;
    heap_part_init(&total, r, "heap:allocated");
    report_begin(v, &total.r, "heap-threads", "threads", "threads");
    heap_part_release(&total);
    struct view_section *s = view_add_table(v, "threads", "Threads", columns, COLUMNS);
    size_t shown = report_shown(r, count);
    int64_t top = count ? (int64_t)all[0].cost.self : 0;
    for (size_t i = 0; i < shown; i++)
        put_thread(s, p, all[i].id, &sums[all[i].id], top);
    s->omitted = count - shown;
    free(all);
    free(sums);
}
