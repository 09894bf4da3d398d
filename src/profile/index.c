/* Growth of the profile's indices; see index.h. */
#include "profile/index.h"

#include <stdlib.h>

#include "base/memory.h"

#define SLOTS_MIN 1024
#define SLOTS_EAGER ((size_t)1 << 22) /* up to here memory is cheaper than growing again */

void profile_index_grow(struct profile_index *index, size_t items,
                        uint64_t (*hash)(const void *vector, size_t item), const void *vector)
{
    size_t have = index->mask + 1, count = SLOTS_MIN;
    if (index->mask)
        count = have < SLOTS_EAGER ? have * 4 : have * 2;
    free(index->slots);
    index->slots = memory_array(count, sizeof *index->slots);
    index->mask = count - 1;
    for (size_t i = 0; i < items; i++) {
        size_t at = hash(vector, i) & index->mask;
        while (index->slots[at])
            at = (at + 1) & index->mask;
        index->slots[at] = (uint32_t)i + 1;
    }
}
