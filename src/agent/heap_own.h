/*
 * Allocators that are linked into the program (jemalloc, tcmalloc, mimalloc, or its own): found by
 * their names in its file, their functions' first bytes lead to the hooks in heap_own.c.
 */
#ifndef SONDE_AGENT_HEAP_OWN_H
#define SONDE_AGENT_HEAP_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From the constructor, while the program has one thread; 1 when it has an allocator of its own and
 * that is hooked, 0 when it has none, a negative errno when it has one that cannot be. With `late`
 * the program runs already: EBUSY. */
int heap_own_hook(bool late);

extern bool heap_own_active; /* it is hooked */

/* Whether one of a stack's addresses is in a function of such an allocator, hooked or not. */
bool heap_own_is_among(const uint64_t *address, size_t count);

#endif
