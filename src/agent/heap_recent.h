/*
 * A thread's latest blocks, before the tables of heap_blocks.h: most blocks are freed soon, by who
 * allocated them. An address has one place here, so there is nothing to be looked for; a block that
 * finds its place taken goes to the table. Now and then it is the older one that goes instead, so
 * that what stays for long does not stand in the way of what does not.
 *
 * Places are changed by the thread that has them; another that frees a block of its takes it out in
 * one step (heap_recent.c), which only an eviction need look at: an empty place is nobody else's,
 * and nobody frees a block twice.
 */
#ifndef SONDE_AGENT_HEAP_RECENT_H
#define SONDE_AGENT_HEAP_RECENT_H

#include "agent/heap_blocks.h"

INLINE struct heap_recent *recent_at(const struct heap_thread *t, uint64_t address)
{
    return &t->recent[address >> HEAP_RECENT_SHIFT & t->recent_mask];
}

INLINE struct heap_block recent_get(const struct heap_recent *r)
{
    uint64_t what = r->what; /* in one piece, as it was written */
    return (struct heap_block){.cell = (uint32_t)what, .size = what >> 32};
}

INLINE void recent_set(struct heap_recent *r, uint64_t address, struct heap_block block)
{
    r->what = block.cell | block.size << 32;
    __atomic_store_n(&r->address, address, __ATOMIC_RELEASE);
}

enum heap_loss recent_put_slowly(struct heap_thread *t, uint64_t address, struct heap_block block,
                                 struct heap_block *old);
/* Not among the thread's own. */
struct heap_block recent_take_slowly(struct heap_thread *t, uint64_t address);

/* As blocks_put. `closed`: see recent_unseen. */
INLINE enum heap_loss recent_put(struct heap_thread *t, uint64_t address, struct heap_block block,
                                 struct heap_block *old, bool closed)
{
    struct heap_recent *r = recent_at(t, address);
    old->cell = 0;
    if (__builtin_expect(r->address || block.size >= HEAP_BIG_FIRST || closed, 0))
        return recent_put_slowly(t, address, block, old);
    recent_set(r, address, block);
    return HEAP_LOSSES;
}

/* As blocks_take. */
INLINE struct heap_block recent_take(struct heap_thread *t, uint64_t address)
{
    struct heap_recent *r = recent_at(t, address);
    if (__builtin_expect(r->address != address, 0))
        return recent_take_slowly(t, address);
    struct heap_block block = recent_get(r);
    __atomic_store_n(&r->address, 0, __ATOMIC_RELEASE);
    return block;
}

/* On its way to the cache, for who has something to do meanwhile. */
INLINE void recent_fetch(const struct heap_thread *t, uint64_t address)
{
    __builtin_prefetch(recent_at(t, address), 1);
}

#endif
