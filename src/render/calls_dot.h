/* A graph of traced calls in Graphviz's language: functions as boxes, who called whom as arrows. */
#ifndef SONDE_RENDER_CALLS_DOT_H
#define SONDE_RENDER_CALLS_DOT_H

#include "analyze/calls.h"
#include "base/text.h"

/* Functions under `min` per cent of the time, with all that they call, are left out. */
void calls_dot(const struct calls *c, const struct profile *p, const char *title, double min,
               struct text *out);

#endif
