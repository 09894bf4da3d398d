/*
 * Source text beside the numbers, where the files can be read here. Paths come
 * from a recording and are hostile: only regular files of a sane size are opened, and no
 * more than a bounded number of them.
 */
#ifndef SONDE_SOURCE_H
#define SONDE_SOURCE_H

#include <stdint.h>

struct source;

struct source *source_new(void);
void source_free(struct source *s);
/* A report_source_fn; `context` is the struct source. Holds until source_free. */
const char *source_line(void *context, const char *file, uint32_t line);

#endif
