/*
 * What Python allocates without malloc: the arenas that its own allocator cuts small objects from,
 * or, when that was asked for, every object and buffer by itself. Through the hooks that CPython
 * has for this; the allocator behind stays as it was.
 */
#ifndef SONDE_AGENT_PYTHON_ALLOC_H
#define SONDE_AGENT_PYTHON_ALLOC_H

#include <stdbool.h>

/* Once, when the interpreter is known and the heap is recorded, before its first allocation if that
 * can be. `handle` is of dlopen, or NULL for what the program started with. Not for handlers. */
void python_alloc_hook(void *handle, bool each);

#endif
