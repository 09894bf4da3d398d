/*
 * The layout of a heap segment: what the agent in a process knows about its allocations, shared
 * with the collector as wire/segment.h's segment is. Nothing grows with the number of calls.
 *
 *     header | threads | stack buckets | stacks | frames | cells | range keys | regions | blocks
 *
 * A stack is a run of return addresses, kept once. A cell holds the sums of one thread and one
 * stack; a thread writes its own cells without locks, other threads add to `foreign_*` only.
 *
 * Live blocks are found by address: 8 MB ranges (open-addressed keys; the slot of a key is also
 * the number of its page of regions), 128 regions of 64 KB in each, and for each region a table of
 * struct heap_line, eight blocks each, in the blocks area.
 *
 * What a cell held at the peak, in O(1): `epoch` of the header moves at each new peak; who changes
 * a cell whose epoch is another one first notes what it held (`held`). A cell of the header's epoch
 * held `held` at the peak; any other has not changed since, so it held what it holds.
 * The same again with the tree's epoch for the peak of all processes together.
 */
#ifndef SONDE_WIRE_HEAP_H
#define SONDE_WIRE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_MAGIC 0x31706165686e6f73ull /* "sonheap1" */
#define HEAP_VERSION 6

#define HEAP_DEPTH 512
#define HEAP_PYTHON_DEPTH 256 /* Python frames of a stack, at most */
#define HEAP_THREADS 16384u
#define HEAP_BUCKETS 65536u
#define HEAP_RANGES 16384u
#define HEAP_RANGE_SHIFT 23
#define HEAP_REGION_SHIFT 16
#define HEAP_REGIONS (1u << (HEAP_RANGE_SHIFT - HEAP_REGION_SHIFT)) /* in a range */
#define HEAP_CELLS_MAX (1u << 24)
#define HEAP_BIG 4096u
#define HEAP_SIZE_BITS 24
#define HEAP_SIZES 22 /* buckets of a cell's histogram; see heap_bucket */
#define HEAP_CLASSES 16

#define HEAP_MEMORY_MIN (8ull << 20)
#define HEAP_MEMORY_MAX (1ull << 36)
#define HEAP_MEMORY_DEFAULT (256ull << 20)
#define HEAP_INTERVAL_DEFAULT (512u << 10)
#define HEAP_LEVEL_MAX 16

enum heap_mode { HEAP_OFF = 0, HEAP_EXACT = 1, HEAP_SAMPLED = 2 };

/* In sampled mode counts are in units of 1 / HEAP_SCALE. */
#define HEAP_SCALE 1024u

/* Allocations that were made but are in no cell. */
enum heap_loss {
    HEAP_LOST_NESTED = 0, /* in a signal handler that interrupted the agent itself */
    HEAP_LOST_BLOCKS,     /* no room for the block, or an address out of reach */
    HEAP_LOST_BUSY,       /* somebody held a region for too long */
    HEAP_LOST_EARLY,      /* another thread was just making the segment */
    HEAP_LOSSES
};

/* What a cell counts. Memory that a program takes from the kernel itself stands beside its heap and
 * is in no sum of it; what its allocator takes is in neither. */
enum heap_kind {
    HEAP_BLOCKS = 0,
    HEAP_MAPPED,        /* anonymous memory, and the program's break */
    HEAP_FILES,         /* mappings of files */
    HEAP_FOR_ALLOCATOR, /* what an allocator in the program maps, if that is not hooked */
    HEAP_KINDS
};

enum heap_pause {
    HEAP_PAUSED = 1,            /* by the collector */
    HEAP_PAUSED_BY_PROGRAM = 2, /* see include/sonde.h */
    HEAP_LEAVING = 4,           /* of an agent that was brought in: it takes its hooks out */
};

struct heap_header {
    uint64_t magic;
    uint32_t version, header_size;
    uint64_t size;
    uint32_t mode; /* enum heap_mode */
    uint32_t pid;
    uint64_t interval; /* bytes between two samples, of sampled mode */
    uint64_t memory;   /* what the layout was computed from */
    uint32_t threads_used, stacks_used, cells_used;
    uint32_t threads_live;
    uint64_t frames_used; /* words */
    uint64_t blocks_used; /* bytes */
    uint64_t start;
    uint64_t lost[HEAP_LOSSES];
    uint64_t lost_bytes;
    uint64_t mappings_lost;
    uint64_t unknown_frees; /* of blocks from before the agent, from before a fork, or lost ones */
    uint32_t chunks_lock, chunks[HEAP_CLASSES]; /* free tables by size */
    /* Written in batches, read by every call. */
    int64_t total __attribute__((aligned(64))); /* bytes live */
    int64_t told;                               /* of it, to the tree */
    uint64_t peak, peak_time;
    uint64_t peak_timed; /* what it was when the clock was asked last */
    uint64_t peak_seen;  /* largest total; `peak` may be a little less with several threads */
    uint32_t left, left_number; /* the process ends in order: the how many-th that left */
    /* Read by every call, written at new peaks alone. */
    uint32_t epoch __attribute__((aligned(64)));
    uint32_t paused; /* enum heap_pause: allocations are passed over, frees are not */
    uint32_t unseen; /* the agent's: a free was passed over; see agent/heap_recent.h */
    uint32_t level;  /* the collector's: samples are 2^level times `interval` apart from now on */
    uint64_t big[HEAP_BIG] __attribute__((aligned(64))); /* sizes, 0: free */
};

/* A thread that allocated or freed. Entry 0 stands for those that found no entry. */
struct heap_slot {
    uint32_t state; /* 0 unused, 1 alive, 2 ended */
    uint32_t tid;
    uint64_t start, end;
    char name[16];
    uint64_t allocations; /* generated; reallocations count as one and one free */
    uint64_t frees;
    uint64_t mappings; /* calls of mmap and the like, apart from allocations */
    uint64_t cost;     /* ns spent on samples, of sampled mode */
} __attribute__((aligned(64)));

/* Entry 0 stands for all that found no room. Behind its addresses a stack has its Python frames,
 * two words each: the code object; instruction (32 bits) | end of the stamp (28) | flags (4). What
 * the code object is stands in a SEGMENT_CODE of the process. */
struct heap_stack {
    uint64_t hash;
    uint32_t next;  /* in its bucket; 0 ends it */
    uint32_t first; /* in units of 4 words */
    uint16_t count; /* set last */
    uint8_t reason; /* enum unwind_reason */
    uint8_t python_whole;
    uint16_t python;      /* frames; those of Python are not in `count` */
    uint16_t interrupted; /* index of the one that a signal interrupted, or 0 */
};

/* Cells 0 and 1 are special: 0 is none, 1 is shared by threads that found no cell any more. A cell
 * with an origin has no allocations: it counts what its thread freed of another thread's cell,
 * which is the origin. */
struct heap_cell {
    uint64_t allocations, bytes;
    uint64_t frees, freed; /* by the thread itself */
    uint32_t epoch, tree_epoch;
    uint32_t stack, thread;              /* set at birth */
    uint64_t temporary, temporary_bytes; /* freed before the thread's next allocation */

    uint64_t held, tree_held;
    uint64_t foreign_frees, foreign_freed; /* by other threads */
    uint32_t origin;
    uint16_t kind;  /* enum heap_kind */
    uint16_t level; /* of its samples, set at birth */
    uint32_t sizes[HEAP_SIZES];
} __attribute__((aligned(64)));

struct heap_region {
    uint32_t lock;
    uint32_t owner;  /* the place of the thread that needs no lock; see heap_regions.c */
    uint32_t table;  /* in units of 64 bytes from the blocks; valid while bits != 0 */
    uint32_t factor; /* from an address to its line; see heap_blocks.h */
    uint64_t spilled;
    uint16_t used; /* blocks */
    uint16_t most; /* of them, before the table is made anew */
    uint8_t bits;  /* log2 of the slots */
    uint8_t stuck; /* how often in a row nobody got the lock */
};

/* Eight blocks. A key is the address within the region, / 8, + 1; 0 means that there is none, so it
 * is written last and wiped first. Sizes of HEAP_BIG_FIRST and more are places in header.big. */
struct heap_line {
    uint16_t key[8];
    uint32_t what[8]; /* cell << 8 | high byte of the size */
    uint16_t size[8]; /* the rest of it */
} __attribute__((aligned(64)));

#define HEAP_BIG_FIRST ((1u << HEAP_SIZE_BITS) - HEAP_BIG)

/* The whole tree's memory: one such page a session, made by the collector, mapped by every agent.
 *
 * `total` and `peak` are bytes << 16 | how many processes have left so far: one step takes a
 * process out and numbers it, so whoever raises the peak knows, in the same word, who was still in
 * the sum. */
struct heap_tree {
    uint64_t magic;
    uint64_t tick; /* the collector's clock, some ms old */
    int64_t total __attribute__((aligned(64)));
    uint64_t peak, peak_time;
    uint32_t epoch __attribute__((aligned(64)));
    uint32_t processes;
};

#define HEAP_TREE_SHIFT 16
#define HEAP_STAMP_MASK 0xfffffffull /* of a stamp in a Python frame */

static inline int64_t heap_tree_bytes(int64_t word)
{
    return word >> HEAP_TREE_SHIFT;
}

/* Takes `bytes` out of the total for good; the number of who left. */
static inline uint32_t heap_tree_leave(struct heap_tree *tree, int64_t bytes)
{
    int64_t by = 1 - bytes * (1 << HEAP_TREE_SHIFT);
    return (uint32_t)__atomic_add_fetch(&tree->total, by, __ATOMIC_ACQ_REL) & 0xffff;
}

/* Whether the one that left as `number` was in the sum that made `peak`. */
static inline bool heap_tree_has(uint64_t peak, uint32_t number)
{
    return (int16_t)(uint16_t)(number - peak) > 0;
}

static inline uint32_t heap_bucket(uint64_t size)
{
    uint32_t bits = 60u - (uint32_t)__builtin_clzll(size | 15); /* 0-15 together; 16-31; 32-63 … */
    return bits < HEAP_SIZES ? bits : HEAP_SIZES - 1;
}

static inline uint64_t heap_live(const struct heap_cell *c)
{
    return c->bytes - c->freed - __atomic_load_n(&c->foreign_freed, __ATOMIC_RELAXED);
}

struct heap_layout {
    uint64_t threads, buckets, stacks, frames, cells, keys, regions, blocks, size;
    uint32_t stack_count, cell_count;
    uint64_t frame_words, block_bytes;
};

/* False when `memory` is out of bounds. */
static inline bool heap_layout(uint64_t memory, struct heap_layout *l)
{
    if (memory < HEAP_MEMORY_MIN || memory > HEAP_MEMORY_MAX || memory % 4096)
        return false;
    /* A stack of Python's has some 150 frames and more, those of the interpreter among them. */
    uint64_t cells = memory / 16 * 3 / sizeof(struct heap_cell);
    l->cell_count = cells < HEAP_CELLS_MAX ? (uint32_t)cells : HEAP_CELLS_MAX;
    l->stack_count = l->cell_count;
    l->frame_words = memory / 16 * 5 / 8 & ~511ull;
    if (l->frame_words > (uint64_t)UINT32_MAX * 4)
        l->frame_words = (uint64_t)UINT32_MAX * 4 & ~511ull;
    l->block_bytes = memory / 16 * 7 & ~4095ull;
#define HEAP_AFTER(at, bytes) (((at) + (uint64_t)(bytes) + 4095) & ~4095ull)
    l->threads = HEAP_AFTER(0, sizeof(struct heap_header));
    l->buckets = HEAP_AFTER(l->threads, HEAP_THREADS * sizeof(struct heap_slot));
    l->stacks = HEAP_AFTER(l->buckets, HEAP_BUCKETS * sizeof(uint32_t));
    l->frames = HEAP_AFTER(l->stacks, l->stack_count * sizeof(struct heap_stack));
    l->cells = HEAP_AFTER(l->frames, l->frame_words * 8);
    l->keys = HEAP_AFTER(l->cells, l->cell_count * sizeof(struct heap_cell));
    l->regions = HEAP_AFTER(l->keys, HEAP_RANGES * sizeof(uint64_t));
    l->blocks = HEAP_AFTER(l->regions, HEAP_RANGES * HEAP_REGIONS * sizeof(struct heap_region));
    l->size = HEAP_AFTER(l->blocks, l->block_bytes);
#undef HEAP_AFTER
    return true;
}

_Static_assert(sizeof(struct heap_cell) == 192, "three cache lines");
_Static_assert(sizeof(struct heap_region) == 32, "two a cache line");
_Static_assert(sizeof(struct heap_stack) == 24, "part of the layout");

#endif
