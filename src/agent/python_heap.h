/*
 * The Python frames that an allocation comes from. They are read in the hook itself, where the
 * calling thread's frames hold still: all of them at each call for a hash (the salt), which tells
 * known stacks apart; what they are is only told of stacks that are new.
 */
#ifndef SONDE_AGENT_PYTHON_HEAP_H
#define SONDE_AGENT_PYTHON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/heap.h"
#include "agent/python.h"

/* Whether there is an interpreter whose frames can be read. */
static inline bool python_heap_is_on(void)
{
    return __atomic_load_n(&agent_python.ready, __ATOMIC_ACQUIRE) && agent_python.py.this_thread &&
           agent_settings.python_only;
}

/* Sets t->salt; `sp` is where the caller's stack begins. */
void python_heap_walk(struct heap_thread *t, uint64_t sp);

/* The frames of the last walk as words of the segment, at most HEAP_PYTHON_DEPTH frames; how many
 * frames. The collector is told what they are. */
size_t python_heap_tell(struct heap_thread *t, uint64_t *words, bool *whole);

#endif
