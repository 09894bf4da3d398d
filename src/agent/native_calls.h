/*
 * Calls of instrumented programs, as their compilers tell of them:
 *
 *   native_calls.c    -finstrument-functions, which tells of ends as well; what is rare of -pg
 *   native_mcount.c   -pg, with mcount or (-mfentry) __fentry__
 *
 * With -pg nothing is said when a function returns. Its return address is left alone, since
 * exceptions, gprof's own counts and every walk of the stack depend on it: a call has ended when
 * another begins no deeper in the stack, and as far as can be known it ended then.
 */
#ifndef SONDE_AGENT_NATIVE_CALLS_H
#define SONDE_AGENT_NATIVE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/trace.h"

#define NATIVE_DEPTH 16384

/* What of a thread is open, outermost first. */
struct native_stack {
    uint32_t count;
    struct {
        uint64_t slot; /* where on the stack its return address lies */
        uint32_t id;
    } open[NATIVE_DEPTH];
};

/* A signal handler may be instrumented, too: what interrupts a word being written is lost. */
extern __thread bool native_busy __attribute__((tls_model("initial-exec")));

extern bool native_real_known; /* libc's own functions have been looked for */

/* Asked by the entries of native_mcount.c, with integer registers alone: true if it takes more. */
bool native_begins(uint64_t function, uint64_t slot);
/* Then, with all registers saved. */
void native_begins_rarely(uint64_t function, uint64_t slot);

/* How many of those that are open have ended when a call begins at `slot`. */
static inline uint32_t native_ended(const struct native_stack *s, uint64_t slot)
{
    uint32_t ended = 0;
    while (ended < s->count && s->open[s->count - 1 - ended].slot <= slot)
        ended++;
    return ended;
}

static inline void native_step(struct trace_thread *t, uint32_t id, uint64_t slot, uint32_t ended)
{
    struct native_stack *s = t->native;
    uint32_t depth = trace_settings.depth ? trace_settings.depth : NATIVE_DEPTH;
    for (; ended; ended--)
        if (--s->count < depth)
            trace_put(t, TRACE_LEAVE, s->open[s->count].id);
    if (s->count == NATIVE_DEPTH)
        return;
    s->open[s->count].slot = slot;
    s->open[s->count].id = id;
    if (s->count++ < depth)
        trace_put(t, TRACE_ENTER, id);
}

#endif
