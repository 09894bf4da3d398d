/* The writing half of perf script's text, for the vtable in perf_script.c. */
#ifndef SONDE_PERF_SCRIPT_INTERNAL_H
#define SONDE_PERF_SCRIPT_INTERNAL_H

#include "formats/format.h"

/* A block a sample where times are known; else one a stack, its value as the period. */
int perf_script_write(const struct profile *p, const struct export_options *options,
                      struct sink *out, struct error *err);

#endif
