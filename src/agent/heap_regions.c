/*
 * Who may work on a region. Most are used by one thread alone, and to take a lock costs it as much
 * as all the rest: the processor waits until every store before is seen by all. So the first to
 * come owns a region and only says that it is inside. Another one takes the region's lock, puts its
 * mark on the owner's name, makes every processor that runs this program pass a barrier
 * (membarrier), and waits for the owner to be outside. From then on all share the region by its
 * lock.
 *
 *     owner    0 nobody's yet | place + 1 | the same + REVOKED | HEAP_SHARED shared
 */
#include "agent/heap.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/arch.h"

/* Whoever is inside is mostly out again at once, or was put aside by the kernel for some ms. */
#define SPINS 200
#define YIELDS 100
#define SLEEPS 100
#define WAITS (SPINS + YIELDS + SLEEPS)
#define SLEEP 100000 /* ns */
#define STUCK_MAX 8
#define REVOKED 0x80000000u
#define REVOKED_FEW 256 /* so many may be taken away before it is asked whether that pays */

static void pause_briefly(unsigned i)
{
    const struct timespec sleep = {.tv_nsec = SLEEP};
    if (i < SPINS || agent_quiet)
        __builtin_ia32_pause();
    else if (i < SPINS + YIELDS)
        raw0(SYS_sched_yield);
    else
        raw2(SYS_nanosleep, &sleep, NULL);
}

bool heap_lock_wait(struct heap_thread *t, uint32_t *lock)
{
    for (unsigned i = 0; i < WAITS; i++) {
        pause_briefly(i);
        if (!__atomic_load_n(lock, __ATOMIC_RELAXED) &&
            __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0)
            return true;
    }
    t->held = NULL;
    return false;
}

/* A lock that nobody gave back for a while is tried, but no longer waited for. */
static bool lock(struct heap_thread *t, struct heap_region *r)
{
    if (__builtin_expect(r->stuck >= STUCK_MAX, 0) && __atomic_load_n(&r->lock, __ATOMIC_RELAXED))
        return false;
    if (__builtin_expect(!heap_lock(t, &r->lock), 0)) {
        r->stuck += r->stuck < STUCK_MAX;
        return false;
    }
    return true;
}

/* Where blocks wander between threads, owners would only be in the way. */
static bool may_own(const struct heap_thread *t)
{
    const struct heap_process *p = heap_process;
    return t->owner != HEAP_NOBODY && !__atomic_load_n(&p->unbiased, __ATOMIC_ACQUIRE) &&
           4 * p->revoked_regions < p->claimed_regions + 4 * REVOKED_FEW;
}

/* An owner may be in a handler that interrupted it inside, and stay there for long: a collector of
 * garbage stops threads like that. It is then looked for, but no longer waited for. */
static bool is_outside(const struct heap_region *r, uint32_t owner)
{
    const struct heap_thread *t = heap_place((owner & ~REVOKED) - 1);
    for (unsigned i = 0; i < (r->stuck < STUCK_MAX ? WAITS : 1); i++) {
        if (!t || __atomic_load_n(&t->inside, __ATOMIC_ACQUIRE) != r)
            return true;
        pause_briefly(i);
    }
    return false;
}

/* The lock is held, so nobody else changes an owner that is not 0. */
static bool share(struct heap_region *r)
{
    uint32_t owner = 0;
    if (__atomic_compare_exchange_n(&r->owner, &owner, HEAP_SHARED, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST) ||
        owner == HEAP_SHARED)
        return true;
    if (!(owner & REVOKED)) {
        if (agent_quiet)
            return false;
        __atomic_store_n(&r->owner, owner | REVOKED, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&heap_process->revoked_regions, 1, __ATOMIC_RELAXED);
    }
    if (!agent_quiet)
        raw2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
    if (!is_outside(r, owner))
        return false;
    __atomic_store_n(&r->owner, HEAP_SHARED, __ATOMIC_RELEASE);
    return true;
}

bool region_enter_slowly(struct heap_thread *t, struct heap_region *r)
{
    uint32_t nobody = 0;
    if (!__atomic_load_n(&r->owner, __ATOMIC_RELAXED) && may_own(t) &&
        __atomic_compare_exchange_n(&r->owner, &nobody, t->owner, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&heap_process->claimed_regions, 1, __ATOMIC_RELAXED);
        return region_enter(t, r);
    }
    if (!lock(t, r))
        return false;
    if (__builtin_expect(__atomic_load_n(&r->owner, __ATOMIC_ACQUIRE) == HEAP_SHARED, 1) ||
        share(r)) {
        if (__builtin_expect(r->stuck, 0))
            r->stuck = 0;
        return true;
    }
    r->stuck += r->stuck < STUCK_MAX;
    heap_unlock(t, &r->lock);
    return false;
}

void regions_start(void)
{
    long result = raw2(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
    heap_process->unbiased = result != 0;
}

/* Every owner's name gets its mark, so one barrier is enough for all; who comes first to a region
 * sees its owner out. A thread that is just about to become one keeps others out: what they would
 * have put there is counted as lost. */
void regions_share_all(void)
{
    struct heap_process *p = heap_process;
    if (!p || !p->segment || p->unbiased)
        return;
    __atomic_store_n(&p->unbiased, 1, __ATOMIC_SEQ_CST);
    const uint64_t *keys = heap_area(p->layout.keys);
    struct heap_region *all = heap_area(p->layout.regions);
    for (uint32_t i = 0; i < HEAP_RANGES; i++)
        for (uint32_t k = 0; keys[i] && k < HEAP_REGIONS; k++) {
            struct heap_region *r = &all[(size_t)i * HEAP_REGIONS + k];
            uint32_t owner = __atomic_load_n(&r->owner, __ATOMIC_RELAXED);
            if (owner && !(owner & REVOKED))
                __atomic_compare_exchange_n(&r->owner, &owner, owner | REVOKED, false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        }
    raw2(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0);
}
