/* What is rare about a thread's latest blocks; see heap_recent.h. */
#include "agent/heap_recent.h"

#include <string.h>

#include "agent/heap_count.h"

#define EVICT_EVERY 16 /* blocks that found their place taken */

/* Of threads that have no places: it is always taken. */
static struct heap_recent none = {.address = 1};

static struct heap_recent *place_of(uint32_t set, uint64_t address)
{
    return &heap_process->recent[set][address >> HEAP_RECENT_SHIFT & (HEAP_RECENT - 1)];
}

void recent_init(struct heap_thread *t)
{
    t->recent = &none;
    t->recent_mask = 0;
    t->crowded = 0;
}

void recent_claim(struct heap_thread *t)
{
    struct heap_process *p = heap_process;
    for (uint32_t i = 0; i < HEAP_RECENTS; i++) {
        if (__atomic_load_n(&p->recent_claimed[i], __ATOMIC_RELAXED) ||
            __atomic_exchange_n(&p->recent_claimed[i], 1, __ATOMIC_ACQ_REL))
            continue;
        uint32_t used = __atomic_load_n(&p->recents, __ATOMIC_RELAXED);
        while (i >= used && !__atomic_compare_exchange_n(&p->recents, &used, i + 1, true,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        t->recent_set = i;
        t->recent = p->recent[i];
        t->recent_mask = HEAP_RECENT - 1;
        return;
    }
}

/* What is in it stays, for who comes next or frees it. */
void recent_give(struct heap_thread *t)
{
    bool had = t->recent_mask != 0;
    recent_init(t);
    if (had)
        __atomic_store_n(&heap_process->recent_claimed[t->recent_set], 0, __ATOMIC_RELEASE);
}

void recent_forget_all(void)
{
    struct heap_process *p = heap_process;
    memset(p->recent, 0, p->recents * sizeof *p->recent);
    memset(p->recent_claimed, 0, sizeof p->recent_claimed);
    p->recents = 0;
}

void recent_unseen(void)
{
    struct heap_header *h = __atomic_load_n(&heap_process->segment, __ATOMIC_ACQUIRE);
    if (h && !h->unseen)
        __atomic_store_n(&h->unseen, 1, __ATOMIC_SEQ_CST);
}

/* Out of any thread's places. */
static struct heap_block take_anywhere(uint64_t address)
{
    struct heap_block block = {0};
    uint32_t sets = __atomic_load_n(&heap_process->recents, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < sets && !block.cell; i++) {
        struct heap_recent *r = place_of(i, address);
        uint64_t there = __atomic_load_n(&r->address, __ATOMIC_ACQUIRE);
        if (there != address)
            continue;
        struct heap_block found = recent_get(r);
        if (__atomic_compare_exchange_n(&r->address, &there, 0, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            block = found;
    }
    return block;
}

/* Its owner may be moving it to the table, where it is before it leaves its place. */
struct heap_block recent_take_slowly(struct heap_thread *t, uint64_t address)
{
    struct heap_block block = blocks_take(t, address);
    uint32_t sets = __atomic_load_n(&heap_process->recents, __ATOMIC_ACQUIRE);
    if (block.cell || sets <= (t->recent_mask != 0))
        return block;
    block = take_anywhere(address);
    return block.cell ? block : blocks_take(t, address);
}

/* Moves what is in a place to the table. False: there is no room for it. */
static bool evict(struct heap_thread *t, struct heap_recent *r)
{
    uint64_t address = __atomic_load_n(&r->address, __ATOMIC_ACQUIRE);
    struct heap_block old = {0};
    if (address && !blocks_take_over(t, &r->address, address, recent_get(r), &old))
        return false;
    if (old.cell)
        heap_count_ended(t, old);
    return true;
}

/* The place is taken, the size does not fit, or nothing is put here any more. */
enum heap_loss recent_put_slowly(struct heap_thread *t, uint64_t address, struct heap_block block,
                                 struct heap_block *old)
{
    struct heap_recent *r = recent_at(t, address);
    struct heap_block stale = {0};
    bool unseen = __atomic_load_n(&t->segment->unseen, __ATOMIC_RELAXED);
    if (__builtin_expect(unseen || r->address == address, 0))
        stale = take_anywhere(address); /* its end was not seen */
    if (!unseen && t->recent_mask && block.size < HEAP_BIG_FIRST &&
        ++t->crowded % EVICT_EVERY == 0 && evict(t, r)) {
        *old = stale;
        recent_set(r, address, block);
        return HEAP_LOSSES;
    }
    enum heap_loss lost = blocks_put(t, blocks_region(t, address, true), address, block, old);
    if (stale.cell && old->cell)
        heap_count_ended(t, stale);
    else if (stale.cell)
        *old = stale;
    return lost;
}
