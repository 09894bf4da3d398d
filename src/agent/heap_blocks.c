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
    uint32_t bytes = 8u << bits, *head = &h->chunks[bits];
    uint32_t *region = t->held;
    if (__atomic_load_n(head, __ATOMIC_RELAXED)) {
        if (!heap_lock(t, &h->chunks_lock)) {
            t->held = region;
            return false;
        }
        uint32_t first = *head;
        if (first)
            *head = (uint32_t)blocks_table(t, first - 1)[0];
        heap_unlock(t, &h->chunks_lock);
        t->held = region;
        if (first) {
            *unit = first - 1;
            memset(blocks_table(t, *unit), 0, bytes);
            return true;
        }
    }
    uint64_t at;
    if (!heap_reserve(&h->blocks_used, bytes, heap_process->layout.block_bytes, &at))
        return false;
    *unit = (uint32_t)(at / TABLE_UNIT);
    return true;
}

static void chunk_give(struct heap_thread *t, uint8_t bits, uint32_t unit)
{
    struct heap_header *h = heap_process->segment;
    uint32_t *region = t->held;
    if (heap_lock(t, &h->chunks_lock)) {
        blocks_table(t, unit)[0] = h->chunks[bits];
        h->chunks[bits] = unit + 1;
        heap_unlock(t, &h->chunks_lock);
    }
    t->held = region;
}

/* Puts all words of a table into the empty one of `to`. False: there is no room for some of them in
 * their line, or where addresses are scattered in two. */
static bool words_move(const struct heap_thread *t, const uint64_t *from, uint32_t count,
                       struct heap_region *to)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!from[i])
            continue;
        uint32_t home = blocks_home(to, from[i] & KEY_MASK);
        uint64_t *place = blocks_look(blocks_line(t, to, home), UINT32_MAX, true);
        if (!place && to->factor == SCATTERED) {
            place = blocks_look(blocks_neighbour(t, to, home), UINT32_MAX, true);
            to->spilled |= 1ull << home % 64;
        }
        if (!place)
            return false;
        *place = from[i];
    }
    return true;
}

/* All words of a region in the empty table of `to`, in order if that can be. */
static bool words_arrange(const struct heap_thread *t, const struct heap_region *r,
                          struct heap_region *to)
{
    const uint64_t *from = blocks_table(t, r->table);
    uint32_t count = r->bits ? 1u << r->bits : 0;
    to->factor = ORDERED;
    to->most = UINT16_MAX;
    if (to->bits != r->bits && words_move(t, from, count, to))
        return true;
    to->factor = SCATTERED;
    to->most = (uint16_t)(1u << to->bits >> 1);
    to->spilled = 0;
    memset(blocks_table(t, to->table), 0, 8u << to->bits);
    return words_move(t, from, count, to);
}

/* A larger table, or one without order. The thread is in the region. */
static bool region_grow(struct heap_thread *t, struct heap_region *r)
{
    bool same = r->factor == ORDERED && r->used < 1u << r->bits >> 1;
    struct heap_region to = {.bits = r->bits ? r->bits + !same : LINE_BITS};
    for (; to.bits <= BITS_MAX; to.bits++) {
        if (!chunk_take(t, to.bits, &to.table))
            return false;
        if (!words_arrange(t, r, &to)) {
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

/* The word of the address, or an empty one where it may stand; NULL if that takes longer. */
static uint64_t *place_in_line(const struct heap_thread *t, const struct heap_region *r,
                               uint64_t address)
{
    if (__builtin_expect(r->used >= r->most, 0))
        return NULL;
    uint32_t key = blocks_key(address), home = blocks_home(r, key);
    uint64_t *there = NULL;
    if (blocks_spilled(r, home))
        there = blocks_look(blocks_neighbour(t, r, home), key, false);
    return there ? there : blocks_look(blocks_line(t, r, home), key, true);
}

/* A place in the neighbour of the line, which is full. */
static uint64_t *place_beside(const struct heap_thread *t, struct heap_region *r, uint64_t address)
{
    if (r->factor == ORDERED || r->used >= r->most)
        return NULL;
    uint32_t home = blocks_home(r, blocks_key(address));
    uint64_t *place = blocks_look(blocks_neighbour(t, r, home), UINT32_MAX, true);
    r->spilled |= (uint64_t)(place != NULL) << home % 64;
    return place;
}

/* A place for a block where there is none in its line, or a table must grow first; NULL: no room.
 */
static uint64_t *place_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address)
{
    uint64_t *place = place_beside(t, r, address);
    while (!place && region_grow(t, r)) {
        place = place_in_line(t, r, address);
        if (!place)
            place = place_beside(t, r, address);
    }
    return place;
}

/* For a size that a word has no room for; 0: there is none for it either. */
static uint64_t big_word(uint64_t word, uint64_t size)
{
    uint64_t *big = heap_process->segment->big;
    for (uint64_t i = 0; i < HEAP_BIG; i++) {
        uint64_t none = 0;
        if (!__atomic_load_n(&big[i], __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&big[i], &none, size, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return word | i << SIZE_SHIFT | BIG_FLAG;
    }
    return 0;
}

uint64_t blocks_big_size(uint64_t word)
{
    uint64_t *place = &heap_process->segment->big[(word >> SIZE_SHIFT & SIZE_MASK) % HEAP_BIG];
    uint64_t size = *place;
    __atomic_store_n(place, 0, __ATOMIC_RELAXED);
    return size;
}

enum heap_loss blocks_put_slowly(struct heap_thread *t, struct heap_region *r, uint64_t address,
                                 struct heap_block block, struct heap_block *old)
{
    uint64_t word = (uint64_t)block.cell << CELL_SHIFT | blocks_key(address);
    if (block.size <= SIZE_MASK)
        word |= block.size << SIZE_SHIFT;
    else
        word = big_word(word, block.size);
    uint64_t *place = place_in_line(t, r, address);
    if (!place && word)
        place = place_slowly(t, r, address);
    if (place && word) {
        if (*place)
            *old = blocks_read(*place);
        else
            r->used++;
        __atomic_store_n(place, word, __ATOMIC_RELEASE);
    }
    region_leave(t, r);
    return place && word ? HEAP_LOSSES : HEAP_LOST_BLOCKS;
}
