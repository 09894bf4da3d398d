/* What `sonde top` shows, as one JSON document; docs/LIVE.md draws it. */
#ifndef SONDE_LIVE_TOP_H
#define SONDE_LIVE_TOP_H

#include "live/state.h"

/* Of one process or (0) of all, with at most `rows` functions and stacks. Takes long. */
int top_write(struct state *s, int32_t pid, unsigned rows, struct text *out, struct error *err);

#endif
