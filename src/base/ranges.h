/*
 * Ranges of addresses that never overlap, sorted, as a process maps files: each with what to take
 * off an address to get one of the file, and whose it is. Putting one in replaces, cuts or splits
 * what was there.
 */
#ifndef SONDE_RANGES_H
#define SONDE_RANGES_H

#include <stdint.h>

#include "base/vector.h"

struct range {
    uint64_t start, end, bias; /* [start, end) */
    union {                    /* never looked at */
        void *owner;
        uint32_t number;
    };
};

/* All zero is empty. */
struct ranges {
    VECTOR(struct range) all;
};

void ranges_put(struct ranges *r, const struct range *fresh); /* an empty one changes nothing */
const struct range *ranges_find(const struct ranges *r, uint64_t address); /* or NULL */
void ranges_copy(struct ranges *to, const struct ranges *from);            /* replaces `to` */
void ranges_release(struct ranges *r);

#endif
