/*
 * Finds an item of a vector by its contents: open addressing over item numbers and the upper half
 * of their hashes, so that a look-up that meets another item need not go and look at it. A profile
 * holds millions of cells and stacks, and each look at one is a wait for memory. Inside this room
 * only.
 *
 *     size_t at = profile_index_home(index, hash);
 *     for (; index->slots[at]; at = (at + 1) & index->mask)
 *         if (profile_index_may_be(index->slots[at], hash) &&
 *             items[profile_index_item(index->slots[at])] is it) ...
 */
#ifndef SONDE_PROFILE_INDEX_H
#define SONDE_PROFILE_INDEX_H

#include <stdbool.h>

#include "base/map.h"
#include "profile/profile.h"

/* No more than three quarters of the slots are taken. */
static inline bool profile_index_is_full(const struct profile_index *index)
{
    return !index->slots || (index->used + 1) * 4 > (index->mask + 1) * 3;
}

/* By the highest bits, so that growing keeps the order of slots and runs through memory once. */
static inline size_t profile_index_home(const struct profile_index *index, uint64_t hash)
{
    return (size_t)(hash >> index->shift);
}

/* Takes a free slot. */
static inline void profile_index_fill(struct profile_index *index, size_t at, uint64_t hash,
                                      size_t item)
{
    index->slots[at] = (hash >> 32 << 32) | (uint32_t)(item + 1);
    index->used++;
}

static inline bool profile_index_may_be(uint64_t slot, uint64_t hash)
{
    return (slot ^ hash) >> 32 == 0;
}

static inline uint32_t profile_index_item(uint64_t slot)
{
    return (uint32_t)slot - 1;
}

/* Makes more slots. */
void profile_index_grow(struct profile_index *index);

#endif
