/* speedscope's JSON, read; the writer is in speedscope.c. */
#ifndef SONDE_SPEEDSCOPE_READ_H
#define SONDE_SPEEDSCOPE_READ_H

#include "formats/format.h"

int speedscope_detect(const uint8_t *bytes, size_t len);
int speedscope_read(struct source *in, const struct import_options *options, struct profile *p,
                    struct error *err);

#endif
