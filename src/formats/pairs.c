/* Open addressing over the numbers of items; see pairs.h. */
#include "formats/pairs.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

#define SLOTS_MIN 1024

void pairs_release(struct pairs *s)
{
    vector_release(&s->items);
    pairs_seal(s);
}

void pairs_seal(struct pairs *s)
{
    free(s->slots);
    s->slots = NULL;
    s->mask = 0;
}

static size_t find(const struct pairs *s, uint32_t a, uint32_t b)
{
    size_t at = hash_mix(a, b) & s->mask;
    for (; s->slots[at]; at = (at + 1) & s->mask) {
        const struct pair *known = &s->items.data[s->slots[at] - 1];
        if (known->a == a && known->b == b)
            break;
    }
    return at;
}

static void grow(struct pairs *s)
{
    size_t slots = s->slots ? (s->mask + 1) * 2 : SLOTS_MIN;
    free(s->slots);
    s->slots = memory_array(slots, sizeof *s->slots);
    s->mask = slots - 1;
    for (uint32_t i = 0; i < s->items.len; i++)
        s->slots[find(s, s->items.data[i].a, s->items.data[i].b)] = i + 1;
}

uint32_t pairs_add(struct pairs *s, uint32_t a, uint32_t b)
{
    if ((s->items.len + 1) * 3 > s->mask * 2)
        grow(s);
    size_t at = find(s, a, b);
    if (!s->slots[at]) {
        *vector_push(&s->items) = (struct pair){a, b};
        s->slots[at] = (uint32_t)s->items.len;
    }
    return s->slots[at] - 1;
}
