/*
 * Numbers for pairs of numbers: each distinct pair once, counted as they come, in a third of the
 * memory of a struct map. A tree of paths is pairs too: of a parent and what stands on top of it.
 */
#ifndef SONDE_PAIRS_H
#define SONDE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct pair {
    uint32_t a, b;
};

struct pairs {
    VECTOR(struct pair) items;
    uint32_t *slots; /* item + 1, 0 is free */
    size_t mask;     /* slots - 1, or 0 when empty */
};

/* A zeroed struct is empty. */
void pairs_release(struct pairs *s);
/* Finds or makes. */
uint32_t pairs_add(struct pairs *s, uint32_t a, uint32_t b);
/* The index goes and the items stay: nothing more is to be added. */
void pairs_seal(struct pairs *s);

#endif
