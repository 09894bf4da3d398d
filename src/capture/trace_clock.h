/* The processor's ticks as times of CLOCK_MONOTONIC: compared again at every look at the rings. */
#ifndef SONDE_CAPTURE_TRACE_CLOCK_H
#define SONDE_CAPTURE_TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct trace_clock_pair {
    uint64_t ticks, ns;
};

struct trace_clock {
    struct trace_clock_pair first, now;
    double rate; /* ns a tick */
};

/* Whether ticks run evenly on this machine, by what the kernel says of them. */
bool trace_clock_usable(void);
void trace_clock_start(struct trace_clock *c);
void trace_clock_compare(struct trace_clock *c);

static inline uint64_t trace_clock_ns(const struct trace_clock *c, uint64_t ticks)
{
    return c->now.ns + (uint64_t)(int64_t)((double)(int64_t)(ticks - c->now.ticks) * c->rate);
}

#endif
