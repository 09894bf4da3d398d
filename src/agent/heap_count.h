/*
 * What every call of the malloc family changes: its stack's cell, its block, its thread's sums. The
 * order is such that a process that dies between any two instructions leaves sums that are one call
 * behind at worst, never wrong: a call is counted as generated first, as recorded in its cell last.
 *
 * All in one piece (INLINE), once for each mode: calls of functions and questions of the mode were
 * a third of what it took. heap_record.c has what is rare.
 */
#ifndef SONDE_AGENT_HEAP_COUNT_H
#define SONDE_AGENT_HEAP_COUNT_H

#include "agent/alone.h"
#include "agent/heap_memo.h"
#include "agent/heap_recent.h"
#include "agent/python_heap.h"

/* In exact mode every block stands for itself; in sampled mode for as many as were likely passed
 * over: one of `size` bytes is taken with probability 1 - exp(-size / interval). */
struct weight {
    uint64_t count, bytes;
};

/* ---- heap_record.c */
struct weight heap_weigh_sample(const struct heap_cell *c, uint64_t size);
void heap_rise(struct heap_thread *t);
void heap_count_released(struct heap_thread *t, const struct heap_cell *c, struct weight w);
void heap_count_ended(struct heap_thread *t, struct heap_block old);
void heap_pass_over(struct heap_thread *t, uint32_t paused);
void heap_filter_add(struct heap_thread *t, uint64_t address);

INLINE struct weight weigh(const struct heap_cell *c, uint64_t size, bool exact)
{
    return exact ? (struct weight){.count = 1, .bytes = size} : heap_weigh_sample(c, size);
}

/* One that nobody else changes: one instruction, and in the order that is written here. */
INLINE void keep(uint64_t *counter, uint64_t by)
{
    *counter += by;
    __atomic_signal_fence(__ATOMIC_RELEASE);
}

INLINE void add(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* Before any change of a cell: what it held at the latest peaks. */
INLINE void cell_touch(const struct heap_header *h, struct heap_cell *c)
{
    uint32_t epoch = __atomic_load_n(&h->epoch, __ATOMIC_RELAXED);
    uint32_t tree = __atomic_load_n(&heap_tree->epoch, __ATOMIC_RELAXED);
    if (c->epoch != epoch) {
        c->held = heap_live(c);
        __atomic_store_n(&c->epoch, epoch, __ATOMIC_RELEASE);
    }
    if (c->tree_epoch != tree) {
        c->tree_held = heap_live(c);
        __atomic_store_n(&c->tree_epoch, tree, __ATOMIC_RELEASE);
    }
}

INLINE bool is_own(const struct heap_thread *t, const struct heap_cell *c)
{
    return __builtin_expect(c->thread == t->index, 1);
}

INLINE void cell_add(struct heap_thread *t, struct heap_cell *c, uint64_t size, struct weight w)
{
    cell_touch(t->segment, c);
    if (is_own(t, c)) {
        keep(&c->bytes, w.bytes);
        keep(&c->allocations, w.count);
        c->sizes[heap_bucket(size)]++;
    } else {
        add(&c->bytes, w.bytes);
        add(&c->allocations, w.count);
        __atomic_fetch_add(&c->sizes[heap_bucket(size)], 1, __ATOMIC_RELAXED);
    }
}

INLINE void cell_release(struct heap_thread *t, struct heap_cell *c, struct weight w)
{
    cell_touch(t->segment, c);
    if (is_own(t, c)) {
        keep(&c->freed, w.bytes);
        keep(&c->frees, w.count);
    } else {
        add(&c->foreign_freed, w.bytes);
        add(&c->foreign_frees, w.count);
        heap_count_released(t, c, w);
    }
}

INLINE void count_alloc(struct heap_thread *t, struct heap_cell *c, uint64_t size, bool exact)
{
    struct weight w = weigh(c, size, exact);
    cell_add(t, c, size, w);
    t->taken += w.bytes;
    t->live += (int64_t)w.bytes;
    if (__builtin_expect(t->live > t->most, 0))
        heap_rise(t);
}

INLINE void count_free(struct heap_thread *t, struct heap_cell *c, uint64_t size, bool temporary,
                       bool exact)
{
    struct weight w = weigh(c, size, exact);
    cell_release(t, c, w);
    if (temporary && is_own(t, c)) {
        keep(&c->temporary, w.count);
        keep(&c->temporary_bytes, w.bytes);
    }
    t->live -= (int64_t)w.bytes;
    if (__builtin_expect(t->live < t->least, 0))
        heap_flush(t);
}

/* The cell of the stack that leads to `caller`, for a block at `address`; never 0. */
INLINE uint32_t cell_of(struct heap_thread *t, const struct heap_frame *caller, uint64_t address)
{
    struct unwind_call call = heap_call(caller);
    uint64_t memo = 0;
    uint32_t cell = 0;
    if (__builtin_expect(python_heap_is_on(), 0)) {
        recent_fetch(t, address);
        python_heap_walk(t, call.sp);
    }
    if (__builtin_expect(call.sp >= t->stack_low && call.sp < t->stack_end, 1))
        cell = memo_find(t, &call, &memo);
    return __builtin_expect(cell, 1) ? cell : heap_cell_learn(t, caller, memo);
}

INLINE void on_alloc(struct heap_thread *t, uint64_t address, uint64_t size,
                     const struct heap_frame *caller, bool exact)
{
    struct heap_block old, block = {.size = size};
    uint32_t paused = __atomic_load_n(&t->segment->paused, __ATOMIC_RELAXED);
    uint32_t unseen = __atomic_load_n(&t->segment->unseen, __ATOMIC_RELAXED);
    if (__builtin_expect(paused, 0)) {
        heap_pass_over(t, paused);
        return;
    }
    keep(&t->slot->allocations, 1);
    if (!exact)
        t->left = heap_draw(t);
    block.cell = cell_of(t, caller, address);
    enum heap_loss lost = recent_put(t, address, block, &old, unseen);
    if (__builtin_expect(lost != HEAP_LOSSES, 0)) {
        heap_refuse(lost, size);
        return;
    }
    if (!exact)
        heap_filter_add(t, address);
    if (__builtin_expect(old.cell, 0))
        heap_count_ended(t, old);
    count_alloc(t, &t->cells[block.cell], size, exact);
    t->last = address;
    if (__builtin_expect(alone_heap_on, 0))
        alone_heap_after(size);
}

INLINE void on_free(struct heap_thread *t, uint64_t address, struct heap_block block, bool exact)
{
    keep(&t->slot->frees, 1);
    if (__builtin_expect(!block.cell, 0)) {
        if (exact)
            add(&t->segment->unknown_frees, 1);
        return;
    }
    bool temporary = address == t->last;
    count_free(t, &t->cells[block.cell], block.size, temporary, exact);
    if (temporary)
        t->last = 0;
}

/* ---- the same where all is as it mostly is: no function is called, so no register need be saved
 */

/* Whether a cell is the thread's own, and has been looked at since the latest peaks. */
INLINE bool is_current(const struct heap_thread *t, const struct heap_cell *c)
{
    return c->epoch == __atomic_load_n(&t->segment->epoch, __ATOMIC_RELAXED) &&
           c->tree_epoch == __atomic_load_n(&heap_tree->epoch, __ATOMIC_RELAXED) && is_own(t, c);
}

/* False: nothing was done. */
INLINE bool alloc_quickly(struct heap_thread *t, uint64_t address, uint64_t size,
                          const struct heap_frame *caller)
{
    const struct heap_header *h = t->segment;
    struct unwind_call call = heap_call(caller);
    if (__builtin_expect(__atomic_load_n(&h->paused, __ATOMIC_RELAXED) |
                             __atomic_load_n(&h->unseen, __ATOMIC_RELAXED) | agent_python.ready |
                             alone_heap_on,
                         0))
        return false;
    uint32_t cell = memo_find_quickly(t, &call);
    struct heap_cell *c = &t->cells[cell];
    struct heap_recent *r = recent_at(t, address);
    int64_t live = t->live + (int64_t)size;
    if (__builtin_expect(!cell || r->address || size >= HEAP_BIG_FIRST || !is_current(t, c) ||
                             live > t->most,
                         0))
        return false;
    keep(&t->slot->allocations, 1);
    recent_set(r, address, (struct heap_block){.cell = cell, .size = size});
    keep(&c->bytes, size);
    keep(&c->allocations, 1);
    c->sizes[heap_bucket(size)]++;
    t->taken += size;
    t->live = live;
    t->last = address;
    return true;
}

INLINE bool free_quickly(struct heap_thread *t, uint64_t address)
{
    struct heap_recent *r = recent_at(t, address);
    struct heap_block block = recent_get(r);
    struct heap_cell *c = &t->cells[block.cell];
    int64_t live = t->live - (int64_t)block.size;
    if (__builtin_expect(r->address != address || !is_current(t, c) || live < t->least, 0))
        return false;
    __atomic_store_n(&r->address, 0, __ATOMIC_RELEASE);
    keep(&t->slot->frees, 1);
    keep(&c->freed, block.size);
    keep(&c->frees, 1);
    if (address == t->last) {
        keep(&c->temporary, 1);
        keep(&c->temporary_bytes, block.size);
        t->last = 0;
    }
    t->live = live;
    return true;
}

#endif
