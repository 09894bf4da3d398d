/*
 * Resident memory of every process of the tree over time, as the curve "rss" of each, and what it
 * has had of page faults and switches so far: read from /proc as often as was asked for, the latter
 * four times a second at most. Processes whose heap is recorded have the first already.
 */
#ifndef SONDE_RESIDENT_H
#define SONDE_RESIDENT_H

#include <stdint.h>

struct session;
struct resident;

/* `rate` looks a second. */
struct resident *resident_new(uint64_t rate);
void resident_free(struct resident *r); /* NULL-safe */

/* Looks, when it is time to; `r` may be NULL. */
void resident_tick(struct resident *r, struct session *s, uint64_t now);
/* Milliseconds that may go by until it is; at most `most`. */
uint64_t resident_wait(const struct resident *r, uint64_t now, uint64_t most);

#endif
