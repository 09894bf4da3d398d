/* The spans of a profile into a recording; for save.c. */
#ifndef SONDE_SAVE_SPANS_H
#define SONDE_SAVE_SPANS_H

#include "profile/profile.h"
#include "recording/writer.h"

/* `threads` and `frames` are the writer's identifiers by index in the profile. */
void save_spans(const struct profile *p, struct writer *w, const uint32_t *threads,
                const uint32_t *frames);

#endif
