/*
 * What every hook of the malloc family does before and after the allocator: looks at the gate,
 * finds the thread, and records. Inline, since it is on every allocation's way.
 */
#ifndef SONDE_AGENT_HEAP_PASS_H
#define SONDE_AGENT_HEAP_PASS_H

#include <errno.h>

#include "agent/heap.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CALLER ((const struct heap_frame *)__builtin_frame_address(0))
/* Keeps the compiler from moving the gate: a signal handler looks at it. */
#define barrier() __asm__ volatile("" ::: "memory")

static inline void gate_set(uint32_t gate)
{
    barrier();
    agent_self.gate = gate;
    barrier();
}

/* A call that must be recorded, and what the gate was before it. */
struct pass {
    struct heap_thread *thread; /* NULL: the call passes through */
    uint32_t gate;
};

#define PASS_FREE UINT64_MAX /* in the place of `bytes`: nothing is allocated */

/* For any gate but READY, and for a child after fork. */
struct pass pass_slowly(const struct heap_frame *caller, uint64_t bytes);

/* The thread's place where all is as it mostly is, else NULL. */
static inline struct heap_thread *pass_plainly(void)
{
    struct agent_self *s = &agent_self;
    return likely(s->gate == GATE_READY && s->heap->self == s) ? s->heap : NULL;
}

static inline struct pass pass_begin(const struct heap_frame *caller, uint64_t bytes)
{
    struct heap_thread *t = pass_plainly();
    return likely(t != NULL) ? (struct pass){.thread = t, .gate = GATE_READY}
                             : pass_slowly(caller, bytes);
}

static inline void pass_end(struct pass pass)
{
    if (unlikely(pass.gate == GATE_LATE))
        heap_unlock(pass.thread, &pass.thread->lock);
    gate_set(pass.gate);
}

/* After the allocator answered. */
static inline void *record(struct pass pass, void *block, size_t size,
                           const struct heap_frame *caller)
{
    if (!pass.thread)
        return block;
    pass.thread->busy_sp = (uint64_t)(uintptr_t)caller;
    gate_set(GATE_BUSY);
    if (likely(block != NULL))
        heap_on_alloc(pass.thread, (uint64_t)(uintptr_t)block, size, caller);
    pass_end(pass);
    return block;
}

static inline void real_begin(struct pass pass)
{
    if (likely(pass.thread != NULL))
        gate_set(GATE_REAL);
}

/* Sampled mode: whether this allocation is passed over. Exact mode: never. */
static inline bool passed_over(struct heap_thread *t, size_t size)
{
    if (!t->filter)
        return false;
    bool over = size <= t->left;
    t->left -= over ? size : 0;
    return over;
}

/* Whether there is nothing to record: the caller leaves by a jump to the allocator. */
static inline bool skip(struct pass pass, size_t size)
{
    if (unlikely(!pass.thread))
        return true;
    if (!passed_over(pass.thread, size))
        return false;
    if (unlikely(pass.gate == GATE_LATE))
        pass_end(pass);
    return true;
}

/* Allocators keep their word on a block before it; ours and theirs are waited for at once. */
static inline void prefetch_word(const void *block)
{
    __builtin_prefetch((const char *)block - 16, 1);
}

/* Before the allocator takes a block back: after that it may be anybody's. */
static inline struct pass forget_begin(void *block, const struct heap_frame *caller)
{
    prefetch_word(block);
    struct pass pass = pass_begin(caller, PASS_FREE);
    struct heap_thread *t = pass.thread;
    uint64_t address = (uint64_t)(uintptr_t)block;
    if (unlikely(!t))
        return pass;
    if (likely(heap_may_know(t, address))) {
        t->busy_sp = (uint64_t)(uintptr_t)caller;
        gate_set(GATE_BUSY);
        heap_end(t, address);
    }
    gate_set(GATE_REAL);
    return pass;
}

static inline void forget(void *block, const struct heap_frame *caller)
{
    struct pass pass = forget_begin(block, caller);
    if (likely(pass.thread != NULL))
        pass_end(pass);
}

/* A reallocation under way: what it took out. */
struct again {
    uint64_t old, size;
    struct heap_block was;
    bool over; /* what it gives is not recorded */
};

/* In one step with realloc_end: nobody sees the block freed before it is known whether it was. */
static inline struct again realloc_begin(struct pass pass, void *block, size_t size,
                                         const struct heap_frame *caller)
{
    struct heap_thread *t = pass.thread;
    struct again a = {.old = (uint64_t)(uintptr_t)block, .size = size};
    a.over = passed_over(t, size);
    t->busy_sp = (uint64_t)(uintptr_t)caller;
    gate_set(GATE_BUSY);
    if (block && heap_may_know(t, a.old))
        a.was = heap_take(t, a.old);
    gate_set(GATE_REAL);
    return a;
}

static inline void *realloc_end(struct pass pass, const struct again *a, void *now,
                                const struct heap_frame *caller)
{
    struct heap_thread *t = pass.thread;
    gate_set(GATE_BUSY);
    int saved = errno;
    if (!now && a->size) {
        heap_put_back(t, a->old, a->was);
    } else {
        if (a->old)
            heap_on_free(t, a->old, a->was);
        if (now && !a->over)
            heap_on_alloc(t, (uint64_t)(uintptr_t)now, a->size, caller);
    }
    errno = saved;
    pass_end(pass);
    return now;
}

#endif
