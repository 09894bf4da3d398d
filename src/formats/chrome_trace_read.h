/* Trace events, read; the writer is in chrome_trace.c. */
#ifndef SONDE_CHROME_TRACE_READ_H
#define SONDE_CHROME_TRACE_READ_H

#include "formats/format.h"

/* A span of ours for samples of which no frame is known. */
#define TRACE_NO_STACK "[no stack]"

int trace_detect(const uint8_t *bytes, size_t len);
int trace_read(struct source *in, const struct import_options *options, struct profile *p,
               struct error *err);

#endif
