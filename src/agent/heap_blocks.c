/*
 * Live blocks by address. Neighbouring addresses share a region, so threads that allocate from
 * arenas of their own hardly ever meet here, and a region's table stays in the cache of who works
 * in it. A table doubles when it is half full, so that most blocks stand
 * where they belong; the old one is kept for another region.
 */
#include "agent/heap.h"

#include <string.h>
#include <sys/syscall.h>

#include "agent/arch.h"

#define KEY_BITS (HEAP_REGION_SHIFT - 3)
#define KEY_MASK ((1ull << KEY_BITS) - 1)
#define BIG_FLAG (1ull << KEY_BITS)
#define SIZE_SHIFT (KEY_BITS + 1)
#define SIZE_MASK ((1ull << HEAP_SIZE_BITS) - 1)
#define CELL_SHIFT (SIZE_SHIFT + HEAP_SIZE_BITS)
#define BITS_MIN 3
#define UNIT 64u
#define ADDRESS_END (1ull << 47)

_Static_assert(CELL_SHIFT == 40, "a block is one word");

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

/* Ranges never move, so a thread remembers the one it used last. */
static inline struct heap_region *region_of(struct heap_thread *t, uint64_t address, bool make)
{
    uint64_t key = (address >> HEAP_RANGE_SHIFT) + 1;
    if (__builtin_expect(t->range_key != key, 0)) {
        uint32_t range = range_of(address, make);
        if (range == HEAP_RANGES)
            return NULL;
        struct heap_region *all = heap_area(heap_process->layout.regions);
        t->range = &all[(size_t)range * HEAP_REGIONS];
        t->range_key = key;
    }
    return &t->range[address >> HEAP_REGION_SHIFT & (HEAP_REGIONS - 1)];
}

static inline uint64_t *table_at(uint32_t unit)
{
    return heap_area(heap_process->layout.blocks + (uint64_t)unit * UNIT);
}

static inline uint64_t key_of(uint64_t address)
{
    return address >> 3 & KEY_MASK;
}

static inline uint32_t home_of(uint64_t key, uint8_t bits)
{
    return (uint32_t)key * 0x9e3779b1u >> (32 - bits);
}

struct heap_region *blocks_region(struct heap_thread *t, uint64_t address)
{
    struct heap_region *r = address < ADDRESS_END ? region_of(t, address, true) : NULL;
    if (r && r->bits)
        __builtin_prefetch(&table_at(r->table)[home_of(key_of(address), r->bits)], 1);
    return r;
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
            *head = (uint32_t)table_at(first - 1)[0];
        heap_unlock(t, &h->chunks_lock);
        t->held = region;
        if (first) {
            *unit = first - 1;
            memset(table_at(*unit), 0, bytes);
            return true;
        }
    }
    uint64_t at = __atomic_fetch_add(&h->blocks_used, bytes, __ATOMIC_RELAXED);
    if (at + bytes > heap_process->layout.block_bytes) {
        __atomic_fetch_sub(&h->blocks_used, bytes, __ATOMIC_RELAXED);
        return false;
    }
    *unit = (uint32_t)(at / UNIT);
    return true;
}

static void chunk_give(struct heap_thread *t, uint8_t bits, uint32_t unit)
{
    struct heap_header *h = heap_process->segment;
    uint32_t *region = t->held;
    if (heap_lock(t, &h->chunks_lock)) {
        table_at(unit)[0] = h->chunks[bits];
        h->chunks[bits] = unit + 1;
        heap_unlock(t, &h->chunks_lock);
    }
    t->held = region;
}

static void word_put(uint64_t *table, uint8_t bits, uint64_t word)
{
    uint32_t mask = (1u << bits) - 1, i = home_of(word & KEY_MASK, bits);
    while (table[i])
        i = (i + 1) & mask;
    __atomic_store_n(&table[i], word, __ATOMIC_RELEASE);
}

/* Room for one more. The thread is in the region. */
static bool region_grow(struct heap_thread *t, struct heap_region *r)
{
    uint8_t bits = r->bits ? r->bits + 1 : BITS_MIN;
    uint32_t unit;
    if (!chunk_take(t, bits, &unit))
        return false;
    uint64_t *to = table_at(unit), *from = table_at(r->table);
    for (uint32_t i = 0; r->bits && i < 1u << r->bits; i++)
        if (from[i])
            word_put(to, bits, from[i]);
    uint32_t old = r->table;
    uint8_t old_bits = r->bits;
    r->table = unit;
    r->bits = bits;
    if (old_bits)
        chunk_give(t, old_bits, old);
    return true;
}

/* The index of a place for a large size, or SIZE_MASK. */
static uint64_t big_put(uint64_t size)
{
    uint64_t *big = heap_process->segment->big;
    for (uint32_t i = 0; i < HEAP_BIG; i++) {
        uint64_t none = 0;
        if (!__atomic_load_n(&big[i], __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&big[i], &none, size, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return i;
    }
    return SIZE_MASK;
}

static uint64_t word_make(uint64_t address, uint32_t cell, uint64_t size)
{
    uint64_t word = (uint64_t)cell << CELL_SHIFT | key_of(address);
    if (__builtin_expect(size <= SIZE_MASK, 1))
        return word | size << SIZE_SHIFT;
    uint64_t index = big_put(size);
    return index == SIZE_MASK ? 0 : word | index << SIZE_SHIFT | BIG_FLAG;
}

static struct heap_block word_read(uint64_t word, bool release)
{
    struct heap_block b = {.cell = (uint32_t)(word >> CELL_SHIFT),
                           .size = word >> SIZE_SHIFT & SIZE_MASK};
    if (__builtin_expect((word & BIG_FLAG) != 0, 0)) {
        uint64_t *place = &heap_process->segment->big[b.size % HEAP_BIG];
        b.size = *place;
        if (release)
            __atomic_store_n(place, 0, __ATOMIC_RELAXED);
    }
    return b;
}

/* The slot of `key`, or the empty one where it belongs. */
static inline uint32_t slot_of(const uint64_t *table, uint8_t bits, uint64_t key)
{
    uint32_t mask = (1u << bits) - 1, i = home_of(key, bits);
    for (uint32_t n = mask; n && table[i] && (table[i] & KEY_MASK) != key; n--)
        i = (i + 1) & mask;
    return i;
}

enum heap_loss blocks_put(struct heap_thread *t, struct heap_region *r, uint64_t address,
                          struct heap_block block, struct heap_block *old)
{
    old->cell = 0;
    if (__builtin_expect(!r, 0))
        return HEAP_LOST_BLOCKS;
    if (!region_enter(t, r))
        return HEAP_LOST_BUSY;
    if (__builtin_expect(r->bits == 0 || r->used >= 1u << r->bits >> 1, 0) && !region_grow(t, r)) {
        region_leave(t, r);
        return HEAP_LOST_BLOCKS;
    }
    uint64_t word = word_make(address, block.cell, block.size);
    if (__builtin_expect(word != 0, 1)) {
        uint64_t *place = table_at(r->table);
        place += slot_of(place, r->bits, key_of(address));
        if (__builtin_expect(*place != 0, 0))
            *old = word_read(*place, true);
        else
            r->used++;
        __atomic_store_n(place, word, __ATOMIC_RELEASE);
    }
    region_leave(t, r);
    return word ? HEAP_LOSSES : HEAP_LOST_BLOCKS;
}

/* Closes the gap at `i` by moving back what probed over it. */
static void gap_close(uint64_t *table, uint8_t bits, uint32_t i)
{
    uint32_t mask = (1u << bits) - 1;
    uint32_t j = (i + 1) & mask;
    for (uint32_t n = mask; n && table[j]; n--, j = (j + 1) & mask) {
        uint32_t home = home_of(table[j] & KEY_MASK, bits);
        if (((j - home) & mask) < ((j - i) & mask))
            continue;
        __atomic_store_n(&table[i], table[j], __ATOMIC_RELEASE);
        i = j;
    }
    __atomic_store_n(&table[i], 0, __ATOMIC_RELEASE);
}

bool blocks_take(struct heap_thread *t, uint64_t address, struct heap_block *out)
{
    struct heap_region *r = address < ADDRESS_END ? region_of(t, address, false) : NULL;
    if (!r || !r->bits || !region_enter(t, r))
        return false;
    uint64_t *table = table_at(r->table), key = key_of(address);
    uint32_t i = slot_of(table, r->bits, key);
    bool found = table[i] && (table[i] & KEY_MASK) == key;
    if (found) {
        *out = word_read(table[i], true);
        gap_close(table, r->bits, i);
        r->used--;
    }
    region_leave(t, r);
    return found;
}
