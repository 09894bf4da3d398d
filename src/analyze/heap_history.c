/*
 * What stacks did over time, from the history that a recording keeps (DETAIL_GREW, DETAIL_SHRANK);
 * see heap_internal.h and heap.h. Between two points of the history nothing is known but sums.
 */
#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

static bool is_history(const struct profile_detail *d)
{
    return d->kind == DETAIL_GREW || d->kind == DETAIL_SHRANK;
}

static int by_time(const void *left, const void *right)
{
    const struct profile_detail *a = *(const struct profile_detail *const *)left;
    const struct profile_detail *b = *(const struct profile_detail *const *)right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool same_cell(const struct profile_detail *a, const struct profile_detail *b)
{
    return a->thread == b->thread && a->stack == b->stack;
}

/* One point: all that is known of one cell at one time. */
static size_t step_take(const struct profile_detail *const *d, size_t count, struct heap_step *step)
{
    size_t n = 0;
    *step = (struct heap_step){.time = d[0]->key};
    for (; n < count && d[n]->key == d[0]->key; n++) {
        bool grew = d[n]->kind == DETAIL_GREW;
        *(grew ? &step->grew : &step->shrank) += d[n]->value;
        *(grew ? &step->allocations : &step->frees) += d[n]->count;
    }
    return n;
}

void heap_histories(const struct profile *p,
                    void (*each)(void *context, const struct heap_history *history), void *context)
{
    const struct profile_detail **all = memory_array(p->details.len + 1, sizeof *all);
    struct heap_step *steps = memory_array(p->details.len + 1, sizeof *steps);
    size_t count = 0;
    for (size_t i = 0; i < p->details.len; i++)
        if (is_history(&p->details.data[i]))
            all[count++] = &p->details.data[i];
    qsort(all, count, sizeof *all, by_time);
    for (size_t i = 0; i < count;) {
        struct heap_history h = {.thread = all[i]->thread, .stack = all[i]->stack, .steps = steps};
        size_t end = i;
        uint64_t live = 0;
        while (end < count && same_cell(all[end], all[i]))
            end++;
        while (i < end) {
            struct heap_step *step = &steps[h.count++];
            i += step_take(all + i, end - i, step);
            live += step->grew;
            live -= step->shrank < live ? step->shrank : live;
            step->live = live;
        }
        each(context, &h);
    }
    free(steps);
    free(all);
}

struct span {
    struct profile *profile;
    uint32_t event;
    uint64_t from, to;
};

static void hold(void *context, const struct heap_history *h)
{
    struct span *s = context;
    uint64_t grew = 0, shrank = 0, allocations = 0, frees = 0;
    for (size_t i = 0; i < h->count; i++) {
        const struct heap_step *step = &h->steps[i];
        if (step->time <= s->from || step->time > s->to)
            continue;
        grew += step->grew;
        shrank += step->shrank;
        allocations += step->allocations;
        frees += step->frees;
    }
    if (grew > shrank)
        profile_count(s->profile, s->event, h->thread, h->stack,
                      allocations > frees ? allocations - frees : 0, grew - shrank);
}

/* A heap ends with its program: nothing of it is held after that. */
static void drop_ended(struct profile *p, uint32_t event, uint64_t to)
{
    for (size_t i = 0; i < p->cells.len; i++) {
        struct profile_cell *c = &p->cells.data[i];
        const struct profile_process *q = &p->processes.data[p->threads.data[c->thread].process];
        if (c->event != event || !q->ended || q->end > to)
            continue;
        p->events.data[event].value -= c->value;
        p->events.data[event].samples -= c->count;
        c->value = c->count = 0;
    }
}

void heap_hold(struct profile *p, uint64_t from, uint64_t to)
{
    heap_hold_as(p, HEAP_HELD, from, to);
}

void heap_hold_as(struct profile *p, const char *event, uint64_t from, uint64_t to)
{
    struct span s = {.profile = p,
                     .event = profile_event_add(p, event, UNIT_BYTES, 0),
                     .from = from ? p->start + from : 0,
                     .to = to ? p->start + to : UINT64_MAX};
    heap_histories(p, hold, &s);
    if (to)
        drop_ended(p, s.event, s.to);
}

struct short_lived {
    const struct selection *selection;
    struct heap_short *sum;
};

/* Of what a stack allocated between two points, at most what it holds at the second can be alive:
 * the rest was freed in between. */
void heap_history_short(const struct heap_history *h, struct heap_short *sum)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct heap_step *step = &h->steps[i];
        uint64_t gone = step->grew > step->live ? step->grew - step->live : 0;
        sum->bytes += gone;
        sum->allocations +=
            step->grew ? (uint64_t)((double)gone / (double)step->grew * (double)step->allocations)
                       : 0;
    }
}

static void add_short(void *context, const struct heap_history *h)
{
    struct short_lived *s = context;
    if (s->selection->thread[h->thread] && (!s->selection->stack || s->selection->stack[h->stack]))
        heap_history_short(h, s->sum);
}

struct heap_short heap_short_lived(const struct selection *s)
{
    struct heap_short sum = {0};
    struct short_lived context = {.selection = s, .sum = &sum};
    heap_histories(s->profile, add_short, &context);
    return sum;
}
