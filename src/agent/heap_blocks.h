/*
 * Live blocks by address. Neighbouring addresses share a region, so threads that allocate from
 * arenas of their own hardly ever meet here, and a region's table stays in the cache of who works
 * in it. A table is of lines of eight words; a block stands anywhere in the line that its address
 * leads to. So nothing is probed for word by word, and nothing need be moved when a block goes.
 *
 * Lines are in the order of addresses where no line gets more than eight blocks: who frees
 * neighbours, as Python does with a list and what is in it, finds them in the same line, or in the
 * next one, which the processor has fetched by then. Where blocks stand too close here and too far
 * apart there, addresses are scattered over the lines instead, by another factor; if one is full
 * its neighbour takes the block, and the table doubles when it is half full. `spilled` has a bit
 * for the lines of which that was so since the table was made, by their number modulo 64. Whenever
 * a table is made anew the order is tried first. The old one is kept for another region.
 *
 * Here is what every call does; heap_blocks.c has what is rare. Addresses are not 0.
 */
#ifndef SONDE_AGENT_HEAP_BLOCKS_H
#define SONDE_AGENT_HEAP_BLOCKS_H

#include "agent/arch.h"
#include "agent/heap.h"

#define KEY_BITS (HEAP_REGION_SHIFT - 3)
#define KEY_MASK ((1ull << KEY_BITS) - 1)
#define BIG_FLAG (1ull << KEY_BITS)
#define SIZE_SHIFT (KEY_BITS + 1)
#define SIZE_MASK ((1ull << HEAP_SIZE_BITS) - 1)
#define CELL_SHIFT (SIZE_SHIFT + HEAP_SIZE_BITS)
#define LINE_BITS 3
#define LINE (1u << LINE_BITS) /* words */
#define TABLE_UNIT (LINE * 8u)
#define ORDERED (1u << (32 - KEY_BITS)) /* factors */
#define SCATTERED 0x9e3779b1u
#define ADDRESS_END (1ull << 47)

_Static_assert(CELL_SHIFT == 40, "a block is one word, and its high half is not 0");

/* A region that the thread did not use lately; NULL if there is none, or no room for one. */
struct heap_region *blocks_region_find(struct heap_thread *t, uint64_t address, bool make);
/* A size that a word has no room for; gives the room back. */
uint64_t blocks_big_size(uint64_t word);

/* Ranges never move, so a thread remembers some of them. */
INLINE struct heap_region *blocks_region(struct heap_thread *t, uint64_t address, bool make)
{
    uint64_t key = (address >> HEAP_RANGE_SHIFT) + 1;
    size_t known = key & (HEAP_RANGES_KNOWN - 1);
    if (__builtin_expect(t->range[known].key != key, 0))
        return blocks_region_find(t, address, make);
    return &t->range[known].regions[address >> HEAP_REGION_SHIFT & (HEAP_REGIONS - 1)];
}

INLINE uint64_t *blocks_table(const struct heap_thread *t, uint32_t unit)
{
    return (uint64_t *)(t->blocks + (uint64_t)unit * TABLE_UNIT);
}

INLINE uint32_t blocks_key(uint64_t address)
{
    return (uint32_t)(address >> 3 & KEY_MASK);
}

/* The line of a key in a region's table. */
INLINE uint32_t blocks_home(const struct heap_region *r, uint32_t key)
{
    return (uint32_t)((uint64_t)(key * r->factor) >> (32 + LINE_BITS - r->bits));
}

INLINE uint64_t *blocks_line(const struct heap_thread *t, const struct heap_region *r,
                             uint32_t home)
{
    return blocks_table(t, r->table) + (size_t)LINE * home;
}

/* The word of a key in a line, else an empty one if that will do, else NULL. */
INLINE uint64_t *blocks_look(uint64_t *line, uint32_t key, bool empty_too)
{
    uint32_t same, empty;
    arch_line_look(line, key, KEY_MASK, &same, &empty);
    if (same)
        return line + __builtin_ctz(same);
    return empty_too && empty ? line + __builtin_ctz(empty) : NULL;
}

/* The line where blocks go that a line has no room for. */
INLINE uint64_t *blocks_neighbour(const struct heap_thread *t, const struct heap_region *r,
                                  uint32_t home)
{
    return blocks_line(t, r, home ^ (r->bits != LINE_BITS));
}

/* Whether a block of that line may stand in the neighbour. */
INLINE bool blocks_spilled(const struct heap_region *r, uint32_t home)
{
    return r->spilled >> home % 64 & 1;
}

/* On its way to the cache. */
INLINE void blocks_fetch(const struct heap_thread *t, const struct heap_region *r, uint64_t address)
{
    if (r && r->bits)
        __builtin_prefetch(blocks_line(t, r, blocks_home(r, blocks_key(address))), 1);
}

INLINE struct heap_block blocks_read(uint64_t word)
{
    struct heap_block b = {.cell = (uint32_t)(word >> CELL_SHIFT),
                           .size = word >> SIZE_SHIFT & SIZE_MASK};
    if (__builtin_expect((word & BIG_FLAG) != 0, 0))
        b.size = blocks_big_size(word);
    return b;
}

/* blocks_put where something is not as it mostly is; the thread is in the region. */
enum heap_loss blocks_put_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address,
                                 struct heap_block block, struct heap_block *old);

/* HEAP_LOSSES when it went well. *old is a block at that address whose end nobody saw, or has cell
 * 0. */
INLINE enum heap_loss blocks_put(struct heap_thread *t, struct heap_region *r, uint64_t address,
                                 struct heap_block block, struct heap_block *old)
{
    old->cell = 0;
    if (__builtin_expect(!r, 0))
        return HEAP_LOST_BLOCKS;
    if (__builtin_expect(!region_enter(t, r), 0))
        return HEAP_LOST_BUSY;
    uint32_t key = blocks_key(address), home = blocks_home(r, key), same = 1, empty = 0;
    uint64_t *line = NULL;
    if (__builtin_expect(r->used < r->most && !blocks_spilled(r, home), 1)) {
        line = blocks_line(t, r, home);
        arch_line_look(line, key, KEY_MASK, &same, &empty);
    }
    if (__builtin_expect(same || !empty || block.size > SIZE_MASK, 0))
        return blocks_put_slowly(t, r, address, block, old);
    uint64_t word = (uint64_t)block.cell << CELL_SHIFT | block.size << SIZE_SHIFT | key;
    __atomic_store_n(line + __builtin_ctz(empty), word, __ATOMIC_RELEASE);
    r->used++;
    region_leave(t, r);
    return HEAP_LOSSES;
}

/* Cell 0: the block is not known. */
INLINE struct heap_block blocks_take(struct heap_thread *t, uint64_t address)
{
    struct heap_block block = {0};
    struct heap_region *r = blocks_region(t, address, false);
    if (__builtin_expect(!r || !r->bits || !region_enter(t, r), 0))
        return block;
    uint32_t key = blocks_key(address), home = blocks_home(r, key);
    uint64_t *place = blocks_look(blocks_line(t, r, home), key, false);
    if (__builtin_expect(!place && blocks_spilled(r, home), 0))
        place = blocks_look(blocks_neighbour(t, r, home), key, false);
    if (__builtin_expect(place != NULL, 1)) {
        block = blocks_read(*place);
        __atomic_store_n(place, 0, __ATOMIC_RELEASE);
        r->used--;
    }
    region_leave(t, r);
    return block;
}

#endif
