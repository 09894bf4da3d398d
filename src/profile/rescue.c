/* Replays the history of all heaps in the order of time; see rescue.h. */
#include "profile/rescue.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* A stack of a thread. Differences are modulo 2^64, as sums in a recording are. */
struct cell {
    uint32_t thread, stack;
    uint32_t next; /* of the same process, + 1 */
    uint64_t live, blocks;
    uint64_t bytes, allocations; /* of all programs */
    uint64_t freed, frees;
};

struct heap {
    uint32_t cells; /* the first, + 1 */
    uint64_t since; /* when its latest program that was written ended, or 0 */
    bool open;      /* changed after that */
    bool changed;   /* is in `changed` */
    uint64_t live, blocks;
    uint64_t peak, peak_time, last;
    uint64_t allocations, frees; /* since then */
};

struct moment {
    uint64_t time;
    bool ends;      /* a program did: nothing of it is held any more */
    uint32_t index; /* of a detail, or of a heap of the profile */
};

struct rescue {
    struct profile *profile;
    struct map index; /* (thread, stack) -> cell */
    VECTOR(struct cell) cells;
    struct heap *heaps; /* by process */
    VECTOR(struct moment) moments;
    VECTOR(uint32_t) changed; /* processes, at this time */
    uint64_t live, peak, peak_time;
};

static int by_time(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->ends != b->ends)
        return a->ends ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static uint32_t process_of(const struct rescue *r, uint32_t thread)
{
    return r->profile->threads.data[thread].process;
}

static void gather(struct rescue *r)
{
    const struct profile *p = r->profile;
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        if ((d->kind == DETAIL_GREW || d->kind == DETAIL_SHRANK) &&
            process_of(r, d->thread) < p->processes.len)
            *vector_push(&r->moments) = (struct moment){.time = d->key, .index = (uint32_t)i};
    }
    for (size_t i = 0; i < p->heaps.len; i++) {
        const struct profile_heap *h = &p->heaps.data[i];
        if (h->process >= p->processes.len)
            continue;
        struct heap *heap = &r->heaps[h->process];
        heap->since = h->time > heap->since ? h->time : heap->since;
        *vector_push(&r->moments) =
            (struct moment){.time = h->time, .ends = true, .index = (uint32_t)i};
    }
    if (r->moments.len)
        qsort(r->moments.data, r->moments.len, sizeof *r->moments.data, by_time);
}

static struct cell *cell_of(struct rescue *r, const struct profile_detail *d, struct heap *h)
{
    bool added;
    uint64_t at = *map_put(&r->index, d->thread, d->stack, r->cells.len, &added);
    if (!added)
        return &r->cells.data[at];
    *vector_push(&r->cells) =
        (struct cell){.thread = d->thread, .stack = d->stack, .next = h->cells};
    h->cells = (uint32_t)at + 1;
    return &r->cells.data[at];
}

static void change(struct rescue *r, const struct profile_detail *d)
{
    uint32_t process = process_of(r, d->thread);
    struct heap *h = &r->heaps[process];
    struct cell *c = cell_of(r, d, h);
    bool grew = d->kind == DETAIL_GREW, open = d->key > h->since;
    uint64_t value = grew ? d->value : 0 - d->value, count = grew ? d->count : 0 - d->count;
    *(grew ? &c->bytes : &c->freed) += d->value;
    *(grew ? &c->allocations : &c->frees) += d->count;
    *(grew ? &h->allocations : &h->frees) += open ? d->count : 0;
    c->live += value;
    c->blocks += count;
    h->live += value;
    h->blocks += count;
    r->live += value;
    h->open |= open;
    h->last = d->key;
    if (!h->changed)
        *vector_push(&r->changed) = process;
    h->changed = true;
}

static void drop(struct rescue *r, uint32_t process)
{
    struct heap *h = &r->heaps[process];
    for (uint32_t i = h->cells; i; i = r->cells.data[i - 1].next)
        r->cells.data[i - 1].live = r->cells.data[i - 1].blocks = 0;
    r->live -= h->live;
    h->live = h->blocks = 0;
}

/* Calls `at` at each time that something is known of, before programs that end then are gone. */
static void replay(struct rescue *r, void (*at)(struct rescue *r, uint64_t time))
{
    const struct moment *m = r->moments.data;
    for (size_t i = 0; i < r->moments.len;) {
        uint64_t time = m[i].time;
        for (; i < r->moments.len && m[i].time == time && !m[i].ends; i++)
            change(r, &r->profile->details.data[m[i].index]);
        at(r, time);
        for (size_t k = 0; k < r->changed.len; k++)
            r->heaps[r->changed.data[k]].changed = false;
        r->changed.len = 0;
        for (; i < r->moments.len && m[i].time == time && m[i].ends; i++)
            drop(r, r->profile->heaps.data[m[i].index].process);
    }
}

static bool is_more(uint64_t a, uint64_t b)
{
    return (int64_t)a > (int64_t)b;
}

static void find_peaks(struct rescue *r, uint64_t time)
{
    if (is_more(r->live, r->peak)) {
        r->peak = r->live;
        r->peak_time = time;
    }
    for (size_t i = 0; i < r->changed.len; i++) {
        struct heap *h = &r->heaps[r->changed.data[i]];
        if (h->open && is_more(h->live, h->peak)) {
            h->peak = h->live;
            h->peak_time = time;
        }
    }
}

static void count_held(struct rescue *r, const char *event, uint32_t process)
{
    uint32_t number = profile_event_add(r->profile, event, UNIT_BYTES, 0);
    for (uint32_t i = r->heaps[process].cells; i; i = r->cells.data[i - 1].next) {
        const struct cell *c = &r->cells.data[i - 1];
        if (is_more(c->live, 0))
            profile_count(r->profile, number, c->thread, c->stack, 0, c->live);
    }
}

static void hold_peaks(struct rescue *r, uint64_t time)
{
    for (uint32_t i = 0; time == r->peak_time && i < r->profile->processes.len; i++)
        count_held(r, "heap:tree-peak", i);
    for (size_t i = 0; i < r->changed.len; i++) {
        const struct heap *h = &r->heaps[r->changed.data[i]];
        if (h->open && h->peak && h->peak_time == time)
            count_held(r, "heap:peak", r->changed.data[i]);
    }
}

/* The history is the same once more: all sums begin anew, peaks stay. */
static void rewind_history(struct rescue *r)
{
    for (size_t i = 0; i < r->profile->processes.len; i++) {
        struct heap *h = &r->heaps[i];
        h->live = h->blocks = h->allocations = h->frees = 0;
    }
    for (size_t i = 0; i < r->cells.len; i++) {
        struct cell *c = &r->cells.data[i];
        c->live = c->blocks = c->bytes = c->allocations = c->freed = c->frees = 0;
    }
    r->live = 0;
}

/* Up to `value` in all: some of it may have been told before. */
static void complete_cell(struct rescue *r, const char *event, const struct cell *c, uint64_t count,
                          uint64_t value)
{
    struct profile *p = r->profile;
    uint32_t number = profile_event_add(p, event, UNIT_BYTES, 0);
    uint32_t at = profile_cell_find(p, number, c->thread, c->stack);
    if (at != PROFILE_NONE) {
        value -= p->cells.data[at].value;
        count -= p->cells.data[at].count;
    }
    if (is_more(value, 0) && !is_more(0, count))
        profile_count(p, number, c->thread, c->stack, count, value);
}

static void complete_heap(struct rescue *r, uint32_t process)
{
    const struct heap *h = &r->heaps[process];
    for (uint32_t i = h->cells; i; i = r->cells.data[i - 1].next) {
        const struct cell *c = &r->cells.data[i - 1];
        complete_cell(r, "heap:allocated", c, c->allocations, c->bytes);
        complete_cell(r, "heap:live", c, c->allocations - c->frees, c->bytes - c->freed);
    }
    *vector_push(&r->profile->heaps) =
        (struct profile_heap){.process = process,
                              .time = h->last,
                              .peak = h->peak,
                              .peak_time = h->peak_time,
                              .live = is_more(h->live, 0) ? h->live : 0,
                              .live_blocks = is_more(h->blocks, 0) ? h->blocks : 0,
                              .allocations = h->allocations,
                              .frees = h->frees};
}

static void put_number(struct profile *p, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    profile_meta_set(p, key, digits);
}

static void finish(struct rescue *r)
{
    struct profile *p = r->profile;
    size_t rescued = 0;
    char text[200];
    for (uint32_t i = 0; i < p->processes.len; i++)
        if (r->heaps[i].open) {
            complete_heap(r, i);
            rescued++;
        }
    put_number(p, "heap_tree_peak", r->peak);
    put_number(p, "heap_tree_peak_time", r->peak_time);
    if (!rescued)
        return;
    snprintf(text, sizeof text,
             "what %zu process%s that had not ended held is as of the last point of the history, "
             "and peaks are the highest of its points",
             rescued, rescued == 1 ? "" : "es");
    *vector_push(&p->notes) =
        (struct profile_note){.level = NOTE_WARNING, .text = profile_string(p, text)};
}

void profile_rescue_heaps(struct profile *p)
{
    if (p->complete || !profile_meta_get(p, "heap_mode") || profile_meta_get(p, "heap_tree_peak"))
        return;
    struct rescue r = {.profile = p, .heaps = memory_array(p->processes.len + 1, sizeof *r.heaps)};
    gather(&r);
    if (r.moments.len) {
        replay(&r, find_peaks);
        rewind_history(&r);
        replay(&r, hold_peaks);
        finish(&r);
    }
    vector_release(&r.moments);
    vector_release(&r.changed);
    vector_release(&r.cells);
    map_release(&r.index);
    free(r.heaps);
}
