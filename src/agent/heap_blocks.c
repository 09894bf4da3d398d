/* What is rare about blocks: ranges, tables that grow, lines that are full, large sizes; see
 * heap_blocks.h. */
#include "agent/heap_blocks.h"

#include <string.h>

#define BITS_MAX (KEY_BITS + 1)

_Static_assert(BITS_MAX < HEAP_CLASSES, "free tables are kept by size");

static uint64_t *keys(void)
{
    return heap_area(heap_process->layout.keys);
}

static inline uint32_t range_home(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 50) & (HEAP_RANGES - 1);
}

/* The slot of a range's key; made if `make`. HEAP_RANGES when it is not there. */
static __attribute__((noinline)) uint32_t range_of(uint64_t address, bool make)
{
    uint64_t key = (address >> HEAP_RANGE_SHIFT) + 1, *table = keys();
    uint32_t i = range_home(key);
    for (uint32_t tries = 0; tries < HEAP_RANGES; tries++, i = (i + 1) & (HEAP_RANGES - 1)) {
        uint64_t there = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
        if (there == key)
            return i;
        if (there)
            continue;
        if (!make)
            return HEAP_RANGES;
        if (__atomic_compare_exchange_n(&table[i], &there, key, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) ||
            there == key)
            return i;
    }
    return HEAP_RANGES;
}

struct heap_region *blocks_region_find(struct heap_thread *t, uint64_t address, bool make)
{
    uint64_t key = (address >> HEAP_RANGE_SHIFT) + 1;
    uint32_t range = address < ADDRESS_END ? range_of(address, make) : HEAP_RANGES;
    if (range == HEAP_RANGES)
        return NULL;
    struct heap_region *all = heap_area(heap_process->layout.regions);
    size_t known = key & (HEAP_RANGES_KNOWN - 1);
    t->range[known].regions = &all[(size_t)range * HEAP_REGIONS];
    t->range[known].key = key;
    return &t->range[known].regions[address >> HEAP_REGION_SHIFT & (HEAP_REGIONS - 1)];
}

/* A table of 1 << bits empty slots; its unit in *unit. */
static bool chunk_take(struct heap_thread *t, uint8_t bits, uint32_t *unit)
{
    struct heap_header *h = heap_process->segment;
    uint32_t lines = 1u << (bits - LINE_BITS), *head = &h->chunks[bits];
    uint32_t *region = t->held;
    if (__atomic_load_n(head, __ATOMIC_RELAXED)) {
        if (!heap_lock(t, &h->chunks_lock)) {
            t->held = region;
            return false;
        }
        uint32_t first = *head;
        if (first)
            *head = blocks_table(t, first - 1)->what[0];
        heap_unlock(t, &h->chunks_lock);
        t->held = region;
        if (first) {
            *unit = first - 1;
            memset(blocks_table(t, *unit), 0, lines * sizeof(struct heap_line));
            return true;
        }
    }
    uint64_t at;
    if (!heap_reserve(&h->blocks_used, lines * sizeof(struct heap_line),
                      heap_process->layout.block_bytes, &at))
        return false;
    *unit = (uint32_t)(at / sizeof(struct heap_line));
    return true;
}

static void chunk_give(struct heap_thread *t, uint8_t bits, uint32_t unit)
{
    struct heap_header *h = heap_process->segment;
    uint32_t *region = t->held;
    if (heap_lock(t, &h->chunks_lock)) {
        blocks_table(t, unit)->what[0] = h->chunks[bits];
        h->chunks[bits] = unit + 1;
        heap_unlock(t, &h->chunks_lock);
    }
    t->held = region;
}

static uint32_t slot_empty(const struct heap_line *line)
{
    uint32_t empty = arch_keys_equal(line->key, 0);
    return empty ? (uint32_t)__builtin_ctz(empty) : NO_SLOT;
}

/* A place for a key that is not in the table; NO_SLOT: its line is full, and the one beside it. */
static struct heap_spot spot_new(const struct heap_thread *t, struct heap_region *r, uint32_t key)
{
    uint32_t home = blocks_home(r, key);
    struct heap_spot spot = {.line = blocks_line(t, r, home)};
    spot.slot = slot_empty(spot.line);
    if (spot.slot == NO_SLOT && r->factor == SCATTERED) {
        spot.line = blocks_neighbour(t, r, home);
        spot.slot = slot_empty(spot.line);
        r->spilled |= 1ull << home % 64;
    }
    return spot;
}

/* Puts all blocks of a table into the empty one of `to`. False: there is no room for some of them
 * in their line, or where addresses are scattered in two. */
static bool blocks_move(const struct heap_thread *t, const struct heap_line *from, uint32_t lines,
                        struct heap_region *to)
{
    for (uint32_t i = 0; i < lines * 8; i++) {
        const struct heap_line *line = &from[i / 8];
        uint32_t key = line->key[i % 8];
        if (!key)
            continue;
        struct heap_spot spot = spot_new(t, to, key - 1);
        if (spot.slot == NO_SLOT)
            return false;
        spot.line->key[spot.slot / 2] = (uint16_t)key;
        spot.line->what[spot.slot / 2] = line->what[i % 8];
        spot.line->size[spot.slot / 2] = line->size[i % 8];
    }
    return true;
}

/* All blocks of a region in the empty table of `to`, in order if that can be. */
static bool blocks_arrange(const struct heap_thread *t, const struct heap_region *r,
                           struct heap_region *to)
{
    const struct heap_line *from = blocks_table(t, r->table);
    uint32_t lines = r->bits ? 1u << (r->bits - LINE_BITS) : 0;
    to->factor = ORDERED;
    to->most = UINT16_MAX;
    if (to->bits != r->bits && blocks_move(t, from, lines, to))
        return true;
    to->factor = SCATTERED;
    to->most = (uint16_t)(1u << to->bits >> 1);
    to->spilled = 0;
    memset(blocks_table(t, to->table), 0, 8u << to->bits);
    return blocks_move(t, from, lines, to);
}

/* A larger table, or one without order. The thread is in the region. */
static bool region_grow(struct heap_thread *t, struct heap_region *r)
{
    bool same = r->factor == ORDERED && r->used < 1u << r->bits >> 1;
    struct heap_region to = {.bits = r->bits ? r->bits + !same : LINE_BITS};
    for (; to.bits <= BITS_MAX; to.bits++) {
        if (!chunk_take(t, to.bits, &to.table))
            return false;
        if (!blocks_arrange(t, r, &to)) {
            chunk_give(t, to.bits, to.table);
            continue;
        }
        uint32_t old = r->table;
        uint8_t old_bits = r->bits;
        r->table = to.table;
        r->bits = to.bits;
        r->factor = to.factor;
        r->spilled = to.spilled;
        r->most = to.most;
        if (old_bits)
            chunk_give(t, old_bits, old);
        return true;
    }
    return false;
}

/* The place of the address, or an empty one where it may stand; NO_SLOT if that takes longer. */
static struct heap_spot place_in_line(const struct heap_thread *t, const struct heap_region *r,
                                      uint64_t address)
{
    struct heap_spot spot = {.slot = NO_SLOT};
    if (r->used >= r->most)
        return spot;
    uint32_t key = blocks_key(address), home = blocks_home(r, key);
    if (blocks_spilled(r, home)) {
        spot.line = blocks_neighbour(t, r, home);
        spot.slot = blocks_look(spot.line, key);
        if (spot.slot != NO_SLOT)
            return spot;
    }
    spot.line = blocks_line(t, r, home);
    spot.slot = blocks_look(spot.line, key);
    if (spot.slot == NO_SLOT)
        spot.slot = slot_empty(spot.line);
    return spot;
}

/* A place in the neighbour of the line, which is full. */
static struct heap_spot place_beside(const struct heap_thread *t, struct heap_region *r,
                                     uint64_t address)
{
    struct heap_spot spot = {.slot = NO_SLOT};
    if (r->factor == ORDERED || r->used >= r->most)
        return spot;
    uint32_t home = blocks_home(r, blocks_key(address));
    spot.line = blocks_neighbour(t, r, home);
    spot.slot = slot_empty(spot.line);
    r->spilled |= (uint64_t)(spot.slot != NO_SLOT) << home % 64;
    return spot;
}

/* A place for a block; a table may have to grow first. NO_SLOT: no room. */
static struct heap_spot place_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address)
{
    struct heap_spot spot;
    do {
        spot = place_in_line(t, r, address);
        if (spot.slot == NO_SLOT)
            spot = place_beside(t, r, address);
    } while (spot.slot == NO_SLOT && region_grow(t, r));
    return spot;
}

/* What stands for a size that a line has no room for; 0: there is no room for it either. */
static uint32_t big_place(uint64_t size)
{
    uint64_t *big = heap_process->segment->big;
    for (uint32_t i = 0; i < HEAP_BIG; i++) {
        uint64_t none = 0;
        if (!__atomic_load_n(&big[i], __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&big[i], &none, size, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return HEAP_BIG_FIRST + i;
    }
    return 0;
}

uint64_t blocks_big_size(uint32_t size)
{
    uint64_t *place = &heap_process->segment->big[(size - HEAP_BIG_FIRST) % HEAP_BIG];
    return __atomic_exchange_n(place, 0, __ATOMIC_RELAXED);
}

enum heap_loss blocks_put_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address,
                                 struct heap_block block, struct heap_block *old)
{
    bool big = block.size >= HEAP_BIG_FIRST;
    uint32_t size = big ? big_place(block.size) : (uint32_t)block.size;
    struct heap_spot spot = {.slot = NO_SLOT};
    if (!big || size)
        spot = place_slowly(t, r, address);
    if (spot.slot != NO_SLOT) {
        if (spot.line->key[spot.slot / 2])
            *old = blocks_read(spot.line, spot.slot);
        else
            r->used++;
        blocks_write(spot.line, spot.slot, blocks_key(address), block.cell, size);
    } else if (big && size) {
        blocks_big_size(size);
    }
    region_leave(t, r);
    return spot.slot != NO_SLOT ? HEAP_LOSSES : HEAP_LOST_BLOCKS;
}

/* In the region all the time: once the block is freed its address may be another's, who waits. */
bool blocks_take_over(struct heap_thread *t, uint64_t *from, uint64_t address,
                      struct heap_block block, struct heap_block *old)
{
    struct heap_region *r = blocks_region(t, address, true);
    old->cell = 0;
    if (!r || !region_enter(t, r))
        return false;
    bool gone = __atomic_load_n(from, __ATOMIC_ACQUIRE) != address;
    struct heap_spot spot = {.slot = NO_SLOT};
    if (!gone)
        spot = place_slowly(t, r, address);
    if (spot.slot == NO_SLOT) {
        region_leave(t, r);
        return gone;
    }
    if (spot.line->key[spot.slot / 2])
        *old = blocks_read(spot.line, spot.slot);
    else
        r->used++;
    blocks_write(spot.line, spot.slot, blocks_key(address), block.cell, (uint32_t)block.size);
    if (!__atomic_compare_exchange_n(from, &address, 0, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED)) {
        __atomic_store_n(&spot.line->key[spot.slot / 2], 0, __ATOMIC_RELEASE);
        r->used--;
    }
    region_leave(t, r);
    return true;
}
