/*
 * Finds an item of a vector by its contents: open addressing over item numbers
 * alone, four bytes a slot, because a profile holds millions of cells and stacks and
 * a look-up is as fast as its memory is small. Inside this room only.
 *
 *     size_t at = hash & index->mask;
 *     for (; index->slots[at]; at = (at + 1) & index->mask)
 *         if (items[index->slots[at] - 1] is it) ...
 */
#ifndef SONDE_PROFILE_INDEX_H
#define SONDE_PROFILE_INDEX_H

#include <stdbool.h>

#include "base/map.h"
#include "profile/profile.h"

/* No more than half of the slots are taken. */
static inline bool profile_index_is_full(const struct profile_index *index, size_t items)
{
    return (items + 1) * 2 > index->mask;
}

/* Makes more slots and puts `items` items back by their hashes. */
void profile_index_grow(struct profile_index *index, size_t items,
                        uint64_t (*hash)(const void *vector, size_t item), const void *vector);

#endif
