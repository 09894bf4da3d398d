/* Growth of the profile's indices; see index.h. */
#include "profile/index.h"

#include <stdlib.h>

#include "base/memory.h"

#define BITS_MIN 10
#define EAGER ((size_t)1 << 20) /* up to here memory is cheaper than growing again */

void profile_index_grow(struct profile_index *index)
{
    struct profile_index old = *index;
    unsigned bits = BITS_MIN;
    if (old.slots)
        bits = 64 - old.shift + (old.mask < EAGER ? 2 : 1);
    index->shift = 64 - bits;
    index->mask = ((size_t)1 << bits) - 1;
    index->slots = memory_array(index->mask + 1, sizeof *index->slots);
    for (size_t i = 0; old.slots && i <= old.mask; i++) {
        if (!old.slots[i])
            continue;
        size_t at = profile_index_home(index, old.slots[i]);
        while (index->slots[at])
            at = (at + 1) & index->mask;
        index->slots[at] = old.slots[i];
    }
    free(old.slots);
}
