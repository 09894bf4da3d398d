/* Memory over time; see curves.h. */
#include "analyze/curves.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

#define TICK (50 * 1000000ull) /* between two points of a series that changes */

struct step {
    uint64_t time;
    uint32_t order;  /* among those of one time */
    uint32_t source; /* process, or SPIKE */
    int64_t value;
};

#define SPIKE PROFILE_NONE

struct steps {
    VECTOR(struct step) all;
};

static void step_add(struct steps *s, uint64_t time, uint32_t source, int64_t value)
{
    struct step step = {time, (uint32_t)s->all.len, source, value > 0 ? value : 0};
    *vector_push(&s->all) = step;
}

static int compare_steps(const void *left, const void *right)
{
    const struct step *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void steps_sort(struct steps *s)
{
    if (s->all.len)
        qsort(s->all.data, s->all.len, sizeof *s->all.data, compare_steps);
}

static void add_series(struct steps *s, const struct profile *p, const struct profile_series *from,
                       uint32_t source)
{
    for (size_t i = 0; i < from->points.len; i++)
        step_add(s, heap_time(p, from->points.data[i].time), source, from->points.data[i].value);
}

static void add_ends(struct steps *s, const struct profile *p, uint32_t process, uint32_t source)
{
    for (size_t i = 0; i < p->heaps.len; i++)
        if (p->heaps.data[i].process == process)
            step_add(s, heap_time(p, p->heaps.data[i].time), source, 0);
}

static void curve_point(struct curve *c, uint64_t time, int64_t value)
{
    if ((uint64_t)value > c->highest) {
        c->highest = (uint64_t)value;
        c->highest_time = time;
    }
    *vector_push(&c->points) = (struct profile_point){time, value};
}

/* What a curve that is at `usual` comes to with the next step; `now` has what it is the sum of, by
 * source, or it is one alone. */
static int64_t step_after(const struct steps *s, size_t at, int64_t usual, const int64_t *now)
{
    const struct step *next = at + 1 < s->all.len ? &s->all.data[at + 1] : NULL;
    if (!next || next->source == SPIKE)
        return usual;
    return now ? usual + next->value - now[next->source] : next->value;
}

/* A peak between two ticks; by the next one the curve is back where it was, unless that says
 * otherwise: then it has stayed there, however late that tick came. */
static void curve_spike(struct curve *c, const struct steps *s, size_t at, int64_t usual,
                        int64_t next)
{
    const struct step *peak = &s->all.data[at];
    curve_point(c, peak->time, peak->value);
    if (at + 1 < s->all.len && peak[1].time > peak->time + TICK && next < peak->value)
        curve_point(c, peak->time + TICK, usual);
}

/* Ends of programs come after their last values, peaks before both. */
static void curve_fill(struct curve *c, const struct profile *p)
{
    struct steps steps = {0};
    for (size_t i = 0; !c->rss && c->thread == PROFILE_NONE && i < p->heaps.len; i++)
        if (p->heaps.data[i].process == c->process)
            step_add(&steps, heap_time(p, p->heaps.data[i].peak_time), SPIKE,
                     (int64_t)p->heaps.data[i].peak);
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *from = &p->series.data[i];
        if (from->process == c->process && from->thread == c->thread &&
            !strcmp(profile_text(p, from->name), c->rss ? "rss" : "heap"))
            add_series(&steps, p, from, 0);
    }
    add_ends(&steps, p, c->process, 0);
    steps_sort(&steps);
    int64_t usual = 0;
    for (size_t i = 0; i < steps.all.len; i++) {
        if (steps.all.data[i].source == SPIKE) {
            curve_spike(c, &steps, i, usual, step_after(&steps, i, usual, NULL));
            continue;
        }
        usual = steps.all.data[i].value;
        curve_point(c, steps.all.data[i].time, usual);
    }
    vector_release(&steps.all);
}

static bool curve_known(const struct curves *c, bool rss, uint32_t process, uint32_t thread)
{
    for (size_t i = 0; i < c->all.len; i++)
        if (c->all.data[i].rss == rss && c->all.data[i].process == process &&
            c->all.data[i].thread == thread)
            return true;
    return false;
}

static bool *chosen_of(const struct selection *s)
{
    const struct profile *p = s->profile;
    bool *chosen = memory_array(p->processes.len + 1, sizeof *chosen);
    for (size_t i = 0; i < p->threads.len; i++)
        chosen[p->threads.data[i].process] |= s->thread[i];
    return chosen;
}

void curves_init(struct curves *c, const struct selection *s)
{
    const struct profile *p = s->profile;
    bool *chosen = chosen_of(s);
    *c = (struct curves){0};
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *from = &p->series.data[i];
        bool rss = !strcmp(profile_text(p, from->name), "rss");
        if ((!rss && strcmp(profile_text(p, from->name), "heap")) ||
            from->process >= p->processes.len || !chosen[from->process] ||
            (from->thread < p->threads.len && !s->thread[from->thread]) ||
            curve_known(c, rss, from->process, from->thread))
            continue;
        struct curve curve = {.rss = rss, .process = from->process, .thread = from->thread};
        curve_fill(&curve, p);
        *vector_push(&c->all) = curve;
    }
    free(chosen);
}

static uint64_t height_of(const struct curves *c, uint32_t process)
{
    for (size_t i = 0; i < c->all.len; i++)
        if (c->all.data[i].process == process && !c->all.data[i].rss &&
            c->all.data[i].thread == PROFILE_NONE)
            return c->all.data[i].highest;
    return 0;
}

static int compare_curves(const void *left, const void *right, void *context)
{
    const struct curve *a = left, *b = right;
    if (a->process != b->process) {
        uint64_t x = height_of(context, a->process), y = height_of(context, b->process);
        return x != y ? (x < y ? 1 : -1) : a->process < b->process ? -1 : 1;
    }
    bool whole[] = {a->thread == PROFILE_NONE, b->thread == PROFILE_NONE};
    if (whole[0] != whole[1])
        return whole[0] ? -1 : 1;
    if (a->rss != b->rss)
        return a->rss ? 1 : -1;
    return a->highest != b->highest ? (a->highest < b->highest ? 1 : -1)
                                    : (a->thread > b->thread) - (a->thread < b->thread);
}

void curves_rank(struct curves *c)
{
    struct curves like = {0}; /* the sort moves what it looks at */
    for (size_t i = 0; i < c->all.len; i++)
        *vector_push(&like.all) = c->all.data[i];
    if (c->all.len)
        qsort_r(c->all.data, c->all.len, sizeof *c->all.data, compare_curves, &like);
    vector_release(&like.all);
}

void curves_release(struct curves *c)
{
    for (size_t i = 0; i < c->all.len; i++)
        curve_release(&c->all.data[i]);
    vector_release(&c->all);
}

void curve_release(struct curve *c)
{
    vector_release(&c->points);
}

/* One process: its own curve. Several: what they held at the same ticks, and the tree's peak. The
 * processes' own peaks fell between ticks, each at another time, so their sum would be wrong. */
void curve_total(struct curve *c, const struct selection *s)
{
    const struct profile *p = s->profile;
    bool *chosen = chosen_of(s);
    struct heap_sums sums;
    struct steps steps = {0};
    bool all = true;
    *c = (struct curve){.process = PROFILE_NONE, .thread = PROFILE_NONE};
    heap_sums_init(&sums, s);
    for (uint32_t i = 0; i < p->processes.len; i++) {
        all = all && (chosen[i] || !sums.by_process[i].known);
        if (sums.processes == 1 && chosen[i] && sums.by_process[i].known)
            step_add(&steps, heap_time(p, sums.by_process[i].peak_time), SPIKE,
                     (int64_t)sums.by_process[i].peak);
    }
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *from = &p->series.data[i];
        if (from->process < p->processes.len && chosen[from->process] &&
            from->thread == PROFILE_NONE && !strcmp(profile_text(p, from->name), "heap"))
            add_series(&steps, p, from, from->process);
    }
    for (uint32_t i = 0; i < p->processes.len; i++)
        if (chosen[i])
            add_ends(&steps, p, i, i);
    if (all && sums.processes > 1)
        step_add(&steps, heap_time(p, sums.tree_peak_time), SPIKE, (int64_t)sums.tree_peak);
    steps_sort(&steps);
    int64_t *now = memory_array(p->processes.len + 1, sizeof *now), total = 0;
    for (size_t i = 0; i < steps.all.len; i++) {
        const struct step *at = &steps.all.data[i];
        if (at->source == SPIKE) {
            curve_spike(c, &steps, i, total, step_after(&steps, i, total, now));
            continue;
        }
        total += at->value - now[at->source];
        now[at->source] = at->value;
        if (i + 1 == steps.all.len || steps.all.data[i + 1].time != at->time)
            curve_point(c, at->time, total);
    }
    free(now);
    free(chosen);
    vector_release(&steps.all);
    heap_sums_release(&sums);
}

uint64_t curve_at(const struct curve *c, uint64_t time)
{
    uint64_t value = 0;
    for (size_t i = 0; i < c->points.len && c->points.data[i].time <= time; i++)
        value = (uint64_t)c->points.data[i].value;
    return value;
}
