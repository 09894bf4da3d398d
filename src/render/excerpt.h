/*
 * Source text beside the numbers, where the files can be read here. Paths come
 * from a recording and are hostile: only regular files of a sane size are opened, and no
 * more than a bounded number of them.
 */
#ifndef SONDE_EXCERPT_H
#define SONDE_EXCERPT_H

#include <stdint.h>

struct excerpt;

struct excerpt *excerpt_new(void);
void excerpt_free(struct excerpt *s);
/* A report_source_fn; `context` is the struct excerpt. Holds until excerpt_free. */
const char *excerpt_line(void *context, const char *file, uint32_t line);

#endif
