/*
 * Leads a function's callers elsewhere by a jump in its first bytes, for functions that are called
 * without any table in between: those of an allocator that is linked into the program. Only before
 * a program's threads are there, since a thread might be at those bytes.
 */
#ifndef SONDE_AGENT_DETOUR_H
#define SONDE_AGENT_DETOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETOUR_BYTES 5 /* that a function loses, at least */

struct detour {
    uint64_t function; /* whose callers go to `hook` */
    uint64_t hook;
    uint64_t size;     /* of the function; 0 if unknown, then it is left alone */
    uint64_t original; /* set by detours_make: call this for what `function` was */
};

/* All of them, or none: 0, or a negative errno (ENOTSUP: the function begins with something that
 * cannot be moved; *failed is which). Two with the same function get the same original; the first
 * one's hook holds. */
int detours_make(struct detour *detours, size_t count, size_t *failed);

/* Whether the address is one of an original. */
bool detour_has(uint64_t address);

#endif
