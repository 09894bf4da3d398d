/*
 * Segments beside the agent's own: the heap's and the trace's. Made at the first use in a process
 * (so in a forked child anew), by whoever comes first, and offered to the collector.
 */
#ifndef SONDE_AGENT_OFFER_H
#define SONDE_AGENT_OFFER_H

#include <stdint.h>

#include "wire/session.h"

/* Where the making stands, in memory that a fork wipes. */
struct offer {
    uint32_t phase; /* enum agent_phase without WAITING */
    uint32_t tries;
};

/* The phase; from ABSENT the caller makes it, unless another thread is at it. `make` returns 0, or
 * a negative errno: -EAGAIN to be asked again, any other for good (which the collector is told with
 * `reason`). The agent's own segment goes first, by which the collector knows the process. Not for
 * handlers. */
uint32_t offer_phase(struct offer *o, int (*make)(void), enum session_reason reason);

/* A segment of `size` bytes, filled and handed over: 0 and where it is; -ENOMEM: a smaller one may
 * do; or another negative errno. */
int offer_make(enum session_kind kind, uint64_t size, void (*fill)(void *at, const void *context),
               const void *context, void **out);

#endif
