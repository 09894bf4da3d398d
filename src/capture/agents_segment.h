/*
 * Reading one segment. The memory belongs to the target and may change under every read, so each
 * thing is copied once and the copy is checked. Nothing here opens, waits or trusts.
 */
#ifndef SONDE_AGENTS_SEGMENT_H
#define SONDE_AGENTS_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/agents.h"

struct segment_view;

/* On `size` bytes at `base`, which stay the caller's and must outlive the view. */
int segment_view_new(void *base, size_t size, struct segment_view **out, struct error *err);
void segment_view_free(struct segment_view *v); /* NULL-safe */

/* Fills in what the header says of the process; comm and exe live as long as the view. */
void segment_view_describe(const struct segment_view *v, struct agents_process *p);

/* Asks the agent for another interval, CPU ns. */
void segment_view_set_interval(struct segment_view *v, uint64_t interval);
void segment_view_hand_over(struct segment_view *v); /* see agents_hand_over */

/* Tells the sink of everything new. `last`: nobody writes here any more, so what is unfinished is
 * skipped and every thread ends. */
void segment_view_drain(struct segment_view *v, bool last, struct agents_process *p,
                        const struct agents_sink *sink, void *context);

#endif
