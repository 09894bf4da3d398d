/*
 * Hash maps with open addressing. `struct map` goes from a 128-bit key (two
 * words, the second often 0) to a 64-bit value; `struct names` gives each
 * distinct string an index from 0 up and keeps a copy.
 */
#ifndef SONDE_MAP_H
#define SONDE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct map_slot {
    uint64_t a, b;
    uint64_t value;
    uint64_t used;
};

struct map {
    struct map_slot *slots;
    size_t len;
    size_t mask; /* slots - 1, or 0 when empty */
};

/* The value at (a, b), or NULL. The pointer holds until the next insertion. */
uint64_t *map_get(const struct map *m, uint64_t a, uint64_t b);
/* The value at (a, b), put there as `fresh` if it was missing; *added (may be NULL) says which. */
uint64_t *map_put(struct map *m, uint64_t a, uint64_t b, uint64_t fresh, bool *added);
bool map_remove(struct map *m, uint64_t a, uint64_t b);
void map_clear(struct map *m); /* keeps the memory */
void map_release(struct map *m);

struct names {
    struct arena arena;
    char **text; /* by index */
    uint32_t *hash;
    size_t len, cap;
    uint32_t *slots; /* index + 1, 0 is free */
    size_t mask;
};

#define NAMES_NONE UINT32_MAX

uint32_t names_add(struct names *n, const char *text);
uint32_t names_add_len(struct names *n, const char *text, size_t len);
uint32_t names_find(const struct names *n, const char *text); /* NAMES_NONE if absent */
void names_release(struct names *n);

uint64_t hash_bytes(const void *data, size_t len);
uint64_t hash_mix(uint64_t a, uint64_t b);

#endif
