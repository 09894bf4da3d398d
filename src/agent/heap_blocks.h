/*
 * Live blocks by address. Neighbouring addresses share a region, so threads that allocate from
 * arenas of their own hardly ever meet here, and a region's table stays in the cache of who works
 * in it. A table is of lines of eight blocks; a block stands anywhere in the line that its address
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
#define LINE_BITS 3                     /* of blocks */
#define ORDERED (1u << (32 - KEY_BITS)) /* factors */
#define SCATTERED 0x9e3779b1u
#define ADDRESS_END (1ull << 47)
#define NO_SLOT 16u

_Static_assert(sizeof(struct heap_line) == 64, "a line of blocks is one of the cache");

/* A block's place: a line and, twice its number there, a slot. */
struct heap_spot {
    struct heap_line *line;
    uint32_t slot;
};

/* A region that the thread did not use lately; NULL if there is none, or no room for one. */
struct heap_region *blocks_region_find(struct heap_thread *t, uint64_t address, bool make);
/* A size that a line has no room for; gives its place back. */
uint64_t blocks_big_size(uint32_t size);

/* Ranges never move, so a thread remembers some of them. */
INLINE struct heap_region *blocks_region(struct heap_thread *t, uint64_t address, bool make)
{
    uint64_t key = (address >> HEAP_RANGE_SHIFT) + 1;
    size_t known = key & (HEAP_RANGES_KNOWN - 1);
    if (__builtin_expect(t->range[known].key != key, 0))
        return blocks_region_find(t, address, make);
    return &t->range[known].regions[address >> HEAP_REGION_SHIFT & (HEAP_REGIONS - 1)];
}

INLINE struct heap_line *blocks_table(const struct heap_thread *t, uint32_t unit)
{
    return &t->blocks[unit];
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

INLINE struct heap_line *blocks_line(const struct heap_thread *t, const struct heap_region *r,
                                     uint32_t home)
{
    return blocks_table(t, r->table) + home;
}

/* The slot of a key in a line, or NO_SLOT. */
INLINE uint32_t blocks_look(const struct heap_line *line, uint32_t key)
{
    uint32_t same = arch_keys_equal(line->key, (uint16_t)(key + 1));
    return same ? (uint32_t)__builtin_ctz(same) : NO_SLOT;
}

/* The line where blocks go that a line has no room for. */
INLINE struct heap_line *blocks_neighbour(const struct heap_thread *t, const struct heap_region *r,
                                          uint32_t home)
{
    return blocks_line(t, r, home ^ (r->bits != LINE_BITS));
}

/* Whether a block of that line may stand in the neighbour. */
INLINE bool blocks_spilled(const struct heap_region *r, uint32_t home)
{
    return r->spilled >> home % 64 & 1;
}

INLINE struct heap_block blocks_read(const struct heap_line *line, uint32_t slot)
{
    uint32_t what = line->what[slot / 2], size = (what & 0xff) << 16 | line->size[slot / 2];
    struct heap_block b = {.cell = what >> 8, .size = size};
    if (__builtin_expect(size >= HEAP_BIG_FIRST, 0))
        b.size = blocks_big_size(size);
    return b;
}

INLINE void blocks_write(struct heap_line *line, uint32_t slot, uint32_t key, uint32_t cell,
                         uint32_t size)
{
    line->what[slot / 2] = cell << 8 | size >> 16;
    line->size[slot / 2] = (uint16_t)size;
    __atomic_store_n(&line->key[slot / 2], (uint16_t)(key + 1), __ATOMIC_RELEASE);
}

/* blocks_put where something is not as it mostly is; the thread is in the region. */
enum heap_loss blocks_put_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address,
                                 struct heap_block block, struct heap_block *old);

/* A block that stands at `from`, and is no more there then; another thread that frees it meanwhile
 * takes it from there in one step, and then it is in no table either. False: there is no room. */
bool blocks_take_over(struct heap_thread *t, uint64_t *from, uint64_t address,
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
    struct heap_line *line = NULL;
    if (__builtin_expect(r->used < r->most && !blocks_spilled(r, home), 1)) {
        line = blocks_line(t, r, home);
        same = arch_keys_equal(line->key, (uint16_t)(key + 1));
        empty = arch_keys_equal(line->key, 0);
    }
    if (__builtin_expect(same || !empty || block.size >= HEAP_BIG_FIRST, 0))
        return blocks_put_slowly(t, r, address, block, old);
    blocks_write(line, (uint32_t)__builtin_ctz(empty), key, block.cell, (uint32_t)block.size);
    r->used++;
    region_leave(t, r);
    return HEAP_LOSSES;
}

/* Cell 0: the block is not known. */
INLINE struct heap_block blocks_take(struct heap_thread *t, uint64_t address)
{
    struct heap_block block = {0};
    struct heap_region *r = blocks_region(t, address, false);
    if (__builtin_expect(!r || !r->bits, 0))
        return block;
    if (__builtin_expect(!region_enter(t, r), 0)) {
        recent_unseen();
        return block;
    }
    uint32_t key = blocks_key(address), home = blocks_home(r, key);
    struct heap_line *line = blocks_line(t, r, home);
    uint32_t slot = blocks_look(line, key);
    if (__builtin_expect(slot == NO_SLOT && blocks_spilled(r, home), 0)) {
        line = blocks_neighbour(t, r, home);
        slot = blocks_look(line, key);
    }
    if (__builtin_expect(slot != NO_SLOT, 1)) {
        block = blocks_read(line, slot);
        __atomic_store_n(&line->key[slot / 2], 0, __ATOMIC_RELEASE);
        r->used--;
    }
    region_leave(t, r);
    return block;
}

#endif
