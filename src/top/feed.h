/*
 * Where `sonde top` gets its figures: a live session's /api/top, asked again and again by a thread
 * of its own, so that keys are answered while an answer is on its way.
 */
#ifndef SONDE_TOP_FEED_H
#define SONDE_TOP_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct feed;

/* `url` is the page's address with its token; `interval` ns between two questions. */
int feed_new(const char *url, uint64_t interval, struct feed **out, struct error *err);
void feed_free(struct feed *s); /* NULL-safe */

/* Of this process alone from now on; 0: of all. Asks at once. */
void feed_select(struct feed *s, int32_t pid);
/* Moves the newest answer into `json` if it has not been taken yet; waits up to `ms` for one. */
bool feed_take(struct feed *s, unsigned ms, struct text *json);
/* Why there is no answer any more, or "": the session has ended, most likely. */
void feed_trouble(struct feed *s, char out[200]);

#endif
