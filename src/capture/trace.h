/*
 * What the agents trace (wire/trace.h), into the recording: spans while they come or, with a limit,
 * the latest of each process at its end; the tree of calls of each thread as sums; counters as
 * curves; lines as sums. A segment is a target's: everything in it is checked, and a forged one
 * yields nonsense for its own process at worst.
 */
#ifndef SONDE_CAPTURE_TRACE_H
#define SONDE_CAPTURE_TRACE_H

#include "capture/agents.h"

struct session;
struct traces;

struct traces *traces_new(struct session *s);
void traces_free(struct traces *t); /* NULL-safe */

/* The agents' words, for the sink; p->trace_user is the traces'. */
void traces_on_mapping(struct traces *t, struct agents_process *p, const struct agents_mapping *m);
void traces_on_trace(struct traces *t, struct agents_process *p);
void traces_on_process_end(struct traces *t, struct agents_process *p);

bool traces_active(const struct traces *t); /* some process has handed a trace over */
/* What the next tick takes in. Agents' rings are read in between: what a word refers to, a mark to
 * the stacks before it, was told before the word was written. */
void traces_see(struct traces *t);
void traces_tick(struct traces *t);
/* After the last process: what there is to say. */
void traces_finish(struct traces *t);

#endif
