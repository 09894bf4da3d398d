/*
 * The agent in a process that ran before it came: the collector makes one of its threads load this
 * library and call sonde_attach_begin. It leaves when the collector says so (HEAP_LEAVING), in the
 * next thread that allocates: the hooks go, the library stays and does nothing.
 */
#ifndef SONDE_AGENT_ATTACH_H
#define SONDE_AGENT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

extern bool attach_active; /* hooks are in GOTs, not in the order of libraries */

void attach_leave(void);      /* from inside an allocation */
void attach_after_load(void); /* more modules have come */

/* The mapping around an address of a stack. Threads from before us have told nobody their stacks.
 */
bool attach_stack(uint64_t address, uint64_t *low, uint64_t *end);

#endif
