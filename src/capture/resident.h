/*
 * Resident memory of every process of the tree over time, as the curve "rss" of each, and what it
 * has had of page faults and switches so far, all read from /proc. Unasked this begins with short
 * gaps, so that a short run has curves too, and takes half a per cent of one CPU at most, however
 * many processes there are. Resident memory is looked at as often as was asked for, if it was.
 * Processes whose heap is recorded have that curve already.
 */
#ifndef SONDE_RESIDENT_H
#define SONDE_RESIDENT_H

#include <stdint.h>

struct session;
struct resident;

#define RESIDENT_UNASKED UINT64_MAX

/* `rate` looks a second, or RESIDENT_UNASKED. */
struct resident *resident_new(uint64_t rate);
void resident_free(struct resident *r); /* NULL-safe */

/* Looks, when it is time to; `r` may be NULL. */
void resident_tick(struct resident *r, struct session *s, uint64_t now);
/* Milliseconds that may go by until it is; at most `most`. */
uint64_t resident_wait(const struct resident *r, uint64_t now, uint64_t most);

#endif
