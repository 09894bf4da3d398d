/*
 * The heap profiler inside a process: every call of the malloc family, by thread and stack, kept as
 * sums in a segment of its own (wire/heap.h).
 *
 *   heap_hooks.c   the interposed functions
 *   heap_real.c    the allocator behind them
 *   heap_count.h   what every call changes: cells, blocks, sums
 *   heap_record.c  what few calls change: totals, peaks, samples
 *   heap_stacks.c  from a walk to a cell
 *   heap_memo.c    ... and from a call to a cell without a walk
 *   heap_blocks.c  from an address to its cell and size
 *   heap_recent.c  ... of a thread's latest blocks
 *   heap_regions.c who may work on which of them
 *   heap_maps.c    what the program maps itself; map_hooks.c has its calls
 *   heap.c         the segment; threads that come and go
 *
 * A thread is in one of the states of enum heap_gate, which the first instruction of every hook
 * looks at. While it is not READY, calls pass through: the allocator's own, or those of a signal
 * handler that came in between. So no lock is ever wanted by code that interrupted its holder.
 */
#ifndef SONDE_AGENT_HEAP_H
#define SONDE_AGENT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/offer.h"
#include "unwind/walk.h"
#include "wire/heap.h"

enum heap_gate {
    GATE_NEW = 0, /* a thread that was not seen yet */
    GATE_READY,
    GATE_REAL, /* inside the allocator */
    GATE_BUSY, /* inside the agent */
    GATE_LATE, /* the thread is nearly over, or was refused: shares a place with its like */
    GATE_OFF,  /* nothing is recorded in this process */
};

/* What is on every call's way. */
#define INLINE static inline __attribute__((always_inline))

#define HEAP_TABLE 256 /* slots of a thread's first table, a power of two */
#define HEAP_WINDOW 2048
#define HEAP_RANGES_KNOWN 8          /* a power of two */
#define HEAP_SHAPES 64               /* a power of two */
#define HEAP_MEMOS 2048              /* a power of two */
#define HEAP_SHARED UINT32_MAX       /* in the place of a region's owner: there is none any more */
#define HEAP_NOBODY (UINT32_MAX - 1) /* in the place of a thread's name: it owns no region */
#define HEAP_RECENTS 16              /* threads that have places for their latest blocks, ... */
#define HEAP_RECENT 8192             /* ... so many each, a power of two, ... */
#define HEAP_RECENT_SHIFT 5          /* ... by address / 32 */
#define HEAP_FILTER_BITS 15
#define HEAP_FILTER (1u << HEAP_FILTER_BITS) /* places of sampled mode's filter */

/* A block; address 0: none. */
struct heap_recent {
    uint64_t address; /* set last */
    uint64_t what;    /* cell | size << 32 */
};

struct heap_known {
    uint64_t hash;
    uint32_t cell; /* 0: free */
};

/* Where the walk from a call (stack pointer and return address) looked last time. */
struct heap_shape {
    uint64_t sp, ip, fp;
    uint64_t seed;    /* of the hash over the words: what else the call is known by */
    uint32_t version; /* of the map */
    uint16_t rest;    /* calls for which it is not tried, since it failed too often */
    uint16_t failed;
    uint16_t rounds;           /* of four words */
    struct unwind_trace trace; /* filled up to whole rounds */
};

/* A thread's private half, in pages that a fork wipes. A thread that has one from before a fork, or
 * of a session that is over, may find that it is another one's by now: `self` says whose it is. */
struct heap_thread {
    const struct agent_self *self; /* set last; NULL: nobody's */
    struct heap_header *segment;
    uint64_t left;    /* sampled mode: bytes to the next sample */
    uint64_t *filter; /* ... and which addresses may be sampled ones; exact mode: NULL */
    struct heap_cell *cells;
    struct heap_recent *recent; /* its latest blocks */
    uint64_t recent_mask;       /* places - 1; 0: it has none */
    struct heap_line *blocks;   /* where tables of blocks begin */
    struct heap_slot *slot;
    struct heap_known *known; /* stack -> cell */
    uint32_t known_mask, known_used;
    uint32_t index;
    uint32_t place; /* of this half */
    uint32_t owner; /* what stands in regions that are its own; never 0 */
    int32_t tid;
    uint32_t lost_cell[HEAP_KINDS]; /* for stacks that found no room */
    struct {
        uint64_t key; /* of a range of addresses that was used lately */
        struct heap_region *regions;
    } range[HEAP_RANGES_KNOWN];
    uint64_t salt;       /* of the Python frames that the call comes from, 0: none */
    uint64_t last;       /* the block of its latest allocation */
    uint64_t taken;      /* bytes in all */
    int64_t live;        /* ... less what it freed */
    int64_t told;        /* what the process knows of that */
    int64_t least, most; /* outside of these `high` is to be raised, or the process told */
    int64_t bound;       /* up to which it need not be told */
    int64_t high;        /* most of `live` since heap_high_start */
    uint64_t stack_low, stack_end;
    uint64_t busy_sp;           /* where the agent was entered */
    uint32_t *held;             /* the lock that is held there */
    struct heap_region *inside; /* the region of its own that it works on */
    uint64_t random;
    uint32_t level; /* of the samples to come: see heap_header.level */
    uint32_t rounds;
    uint32_t lock; /* of the place that late threads share */
    uint32_t recent_set, crowded;
    uint64_t window_at, window_size;
    struct unwind_guesses guesses;
    uint64_t address[HEAP_DEPTH + 2 * HEAP_PYTHON_DEPTH];
    struct python_heap *python; /* see python_heap.h, or NULL */
    struct unwind_cache cache;
    struct heap_known first[HEAP_TABLE];
    struct heap_shape shape[HEAP_SHAPES];
    struct heap_known memo[HEAP_MEMOS]; /* what stood in a shape's words -> cell */
    uint8_t window[HEAP_WINDOW];
};

struct heap_process {
    struct offer offer;
    uint32_t early; /* calls that came while the segment was made */
    uint32_t early_mappings;
    struct heap_header *segment;
    struct heap_layout layout;
    struct heap_thread shared;
    uint32_t places;   /* at and above this one no private half was ever used */
    uint32_t unbiased; /* no region is to be anybody's own any more */
    uint32_t claimed_regions, revoked_regions;
    uint32_t maps_lock, maps_count;
    uint8_t claimed[AGENT_SLOTS];
    uint64_t filter[HEAP_FILTER / 64]; /* bits: whether the counter is not 0 */
    uint16_t filter_count[HEAP_FILTER];
    uint32_t recents; /* sets of `recent` that were ever used */
    uint8_t recent_claimed[HEAP_RECENTS];
    struct heap_recent recent[HEAP_RECENTS][HEAP_RECENT] __attribute__((aligned(64)));
};

struct heap_settings {
    enum heap_mode mode;
    uint64_t interval;
    uint64_t memory;
};

extern struct heap_settings heap_settings;
extern uint32_t heap_pause; /* what a segment that is yet to be made starts as: enum heap_pause */
extern struct heap_process *heap_process; /* NULL unless the heap is recorded */
extern struct heap_tree *heap_tree;       /* never NULL then */

/* Whether the thread has a place that is still its own. */
INLINE bool heap_has_place(const struct agent_self *s)
{
    return s->heap && __atomic_load_n(&s->heap->self, __ATOMIC_RELAXED) == s;
}

/* The caller of a hook, as __builtin_frame_address(0) shows it. */
struct heap_frame {
    uint64_t fp, ip;
};

static inline struct unwind_call heap_call(const struct heap_frame *caller)
{
    return (struct unwind_call){
        .ip = caller->ip, .fp = caller->fp, .sp = (uint64_t)(uintptr_t)caller + 16};
}

/* ---- heap.c */
/* From the constructor, once the agent runs. `tree` is the path of the session's struct heap_tree.
 */
void heap_start(const struct heap_settings *settings, const char *tree);
/* The same for another session, when no thread is in a hook any more. */
bool heap_restart(const struct heap_settings *settings, const char *tree);
/* Makes the segment, if there is to be one: its phase. Not for handlers. */
uint32_t heap_prepare(void);
/* The thread's place, made at its first call (in a forked child: with the segment). NULL when
 * there is none; *gate is then how the thread goes on, and a call that allocates was counted. */
struct heap_thread *heap_enter(uint32_t *gate, bool allocates);
void heap_refuse(enum heap_loss why, uint64_t bytes);
void heap_refuse_mapping(void);
/* What the threads have not told yet, in sum; they go on meanwhile. */
int64_t heap_untold(void);
/* A place that was used before, or NULL. */
struct heap_thread *heap_place(uint32_t i);

/* ---- heap_record.c: the gate is BUSY */
void heap_on_alloc(struct heap_thread *t, uint64_t address, uint64_t size,
                   const struct heap_frame *caller);
/* What realloc takes out and perhaps puts back. */
struct heap_block {
    uint32_t cell; /* 0: not known */
    uint64_t size;
};
struct heap_block heap_take(struct heap_thread *t, uint64_t address);
void heap_put_back(struct heap_thread *t, uint64_t address, struct heap_block block);
void heap_on_free(struct heap_thread *t, uint64_t address, struct heap_block block);
void heap_end(struct heap_thread *t, uint64_t address); /* both in one: a free */
void heap_flush(struct heap_thread *t);                 /* tells the process what is untold */
void heap_high_start(struct heap_thread *t);            /* `high` is looked for from now on */
uint64_t heap_draw(struct heap_thread *t);              /* bytes to the next sample */

/* What the thread freed in all, of its own and of others' blocks. */
INLINE uint64_t heap_given(const struct heap_thread *t)
{
    return t->taken - (uint64_t)t->live;
}

/* What is mapped changes cells alone. */
void heap_count_mapped(struct heap_thread *t, uint32_t cell, uint64_t bytes);
void heap_count_unmapped(struct heap_thread *t, uint32_t cell, uint64_t bytes, bool whole);

/* ---- heap_maps.c: the gate is BUSY */
void maps_add(struct heap_thread *t, uint64_t start, uint64_t size, uint32_t cell);
/* Takes all that is known out of a range. */
void maps_remove(struct heap_thread *t, uint64_t start, uint64_t size);
/* While one range becomes another, nobody else changes any: false if that cannot be had. */
bool maps_hold(struct heap_thread *t);
/* Takes a range out as maps_remove does; what its first piece is a mapping of. */
enum heap_kind maps_remove_held(struct heap_thread *t, uint64_t start, uint64_t size);
void maps_add_held(struct heap_thread *t, uint64_t start, uint64_t size, uint32_t cell);
void maps_let_go(struct heap_thread *t);

/* ---- heap_stacks.c */
/* The cell of the stack that leads to the call, by a walk; never 0. `memo` is memo_find's hash. */
uint32_t heap_cell_learn(struct heap_thread *t, const struct heap_frame *caller, uint64_t memo);
/* The same for what is not a block. */
uint32_t heap_cell_of_kind(struct heap_thread *t, const struct heap_frame *caller,
                           enum heap_kind kind);
/* What it knows of its stacks: their cells stay, new ones are made beside them. */
void heap_forget(struct heap_thread *t);
/* The thread's cell for what it frees of another's; 0 when there are no more. */
uint32_t heap_cell_released(struct heap_thread *t, uint32_t origin);

/* ---- heap_memo.c; see heap_memo.h */
/* The walk from the call has led to `cell`; `hash` is what memo_find said. */
void memo_put(struct heap_thread *t, const struct unwind_call *call, uint64_t hash, uint32_t cell);

/* ---- heap_recent.c; see heap_recent.h */
/* No places; places for a thread that comes, if there are some left; and of one that goes. */
void recent_init(struct heap_thread *t);
void recent_claim(struct heap_thread *t);
void recent_give(struct heap_thread *t);
void recent_forget_all(void);
/* A free was passed over: the block may still be known when its address is given out again. From
 * now on every block goes to the tables, where that is seen. Signal-safe. */
void recent_unseen(void);

/* ---- heap_regions.c */
/* From now on regions may be threads' own; before, and where the kernel refuses, none is. */
void regions_start(void);
/* Before the first moment at which no system call may be made any more. */
void regions_share_all(void);
/* Begins work on a region that is not the thread's own, or not yet; false: somebody else is in it
 * and does not leave. */
bool region_enter_slowly(struct heap_thread *t, struct heap_region *r);

/* The owner's word on where it is and its look at whose the region is stand in this order; nothing
 * else keeps others out: who wants to makes the kernel put a barrier between the two. */
static inline bool region_enter(struct heap_thread *t, struct heap_region *r)
{
    __atomic_store_n(&t->inside, r, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&r->owner, __ATOMIC_RELAXED) == t->owner, 1)) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return true;
    }
    __atomic_store_n(&t->inside, NULL, __ATOMIC_RELEASE);
    return region_enter_slowly(t, r);
}

bool heap_lock_wait(struct heap_thread *t, uint32_t *lock);

/* A lock that may be left held by who never comes back: waits a while, then false. */
static inline bool heap_lock(struct heap_thread *t, uint32_t *lock)
{
    t->held = lock;
    return __builtin_expect(__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0, 1) ||
           heap_lock_wait(t, lock);
}

static inline void heap_unlock(struct heap_thread *t, uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    t->held = NULL;
}

static inline void region_leave(struct heap_thread *t, struct heap_region *r)
{
    if (__builtin_expect(t->inside != NULL, 1))
        __atomic_store_n(&t->inside, NULL, __ATOMIC_RELEASE);
    else
        heap_unlock(t, &r->lock);
}

static inline uint32_t heap_filter_place(uint64_t address)
{
    return (uint32_t)(address >> 4) * 0x9e3779b1u >> (32 - HEAP_FILTER_BITS);
}

/* Whether a block may be known: in exact mode any, in sampled mode one in a place of the filter. */
static inline bool heap_may_know(const struct heap_thread *t, uint64_t address)
{
    if (!t->filter)
        return true;
    uint32_t place = heap_filter_place(address);
    return __atomic_load_n(&t->filter[place / 64], __ATOMIC_RELAXED) >> place % 64 & 1;
}

/* Moves a mark on by `size`, up to `most`; *at is where it was. In one step: who took what is not
 * there and gave it back would in between give others what is somebody's already. */
static inline bool heap_reserve(uint64_t *mark, uint64_t size, uint64_t most, uint64_t *at)
{
    *at = __atomic_load_n(mark, __ATOMIC_RELAXED);
    do {
        if (size > most || *at > most - size)
            return false;
    } while (!__atomic_compare_exchange_n(mark, at, *at + size, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return true;
}

static inline void *heap_area(uint64_t offset)
{
    return (char *)heap_process->segment + offset;
}

#endif
