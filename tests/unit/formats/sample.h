/*
 * A profile with one of everything, and profiles as text for comparison: a line a
 * cell, sorted, in words and not in indices.
 */
#ifndef SONDE_TEST_SAMPLE_H
#define SONDE_TEST_SAMPLE_H

#include "base/text.h"
#include "formats/format.h"
#include "profile/profile.h"

/* Two processes, three threads, ELF, kernel, Python and unknown code, inlined functions, three
 * events. With `times`, profile.samples holds every sample. */
void sample_fill(struct profile *p, bool times);

/* What the profile says, in words. Caller frees. */
char *sample_dump(const struct profile *p);

/* Collects a writer's output. */
int sample_collect(void *context, const void *data, size_t len, struct error *err);
/* Writes with a format into memory. */
void sample_write(const struct format *f, const struct profile *p,
                  const struct export_options *options, struct text *out);
/* Reads bytes as any format that knows them; the result of format.read. */
int sample_read(const void *data, size_t len, const struct import_options *options,
                struct profile *p, struct error *err);

#endif
