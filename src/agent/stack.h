/* The stack of the interrupted thread. Signal-safe; reads nothing that might not be there. */
#ifndef SONDE_AGENT_STACK_H
#define SONDE_AGENT_STACK_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"

/* Writes the addresses to t->address and returns how many. *foreign: the thread was not on the
 * stack it was given (a coroutine, an alternate signal stack); that one is copied by the kernel
 * first, which can fail but not fault. */
size_t stack_walk(struct agent_thread *t, const struct unwind_regs *regs, struct unwind_end *end,
                  bool *foreign);

#endif
