/*
 * Leads a function's callers elsewhere by a jump in its first bytes, for functions that are called
 * without any table in between: those of an allocator that is linked into the program, or of the
 * Python interpreter. Only where no other thread can be at those bytes: before there is one, or
 * with the lock that the function needs.
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

#define DETOURS_SETS 4 /* calls of detours_make, at most */

/* All of them, or none: 0, or a negative errno (ENOTSUP: the function begins with something that
 * cannot be moved; *failed is which). Two with the same function get the same original; the first
 * one's hook holds. */
int detours_make(struct detour *detours, size_t count, size_t *failed);

/* Whether the address is one of an original. */
bool detour_has(uint64_t address);

#endif
