/* Callgrind's files, read; the writer is in callgrind.c. */
#ifndef SONDE_CALLGRIND_READ_H
#define SONDE_CALLGRIND_READ_H

#include "formats/format.h"

int callgrind_detect(const uint8_t *bytes, size_t len);
int callgrind_read(struct source *in, const struct import_options *options, struct profile *p,
                   struct error *err);

#endif
