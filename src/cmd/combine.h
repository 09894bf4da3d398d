/* What `import` and `merge` have in common: several files in, one recording out. */
#ifndef SONDE_COMBINE_H
#define SONDE_COMBINE_H

#include <stdbool.h>

#include "base/error.h"

struct format;
struct profile;

/* Reads all of `paths` (by content, or as `format` if that is not NULL), and makes `output` of
 * them. Nothing is written unless all could be read. */
int combine(char *const *paths, int count, const struct format *format, const char *output,
            bool replace, struct error *err);
/* A profile as the recording `output`. */
int combine_save(const struct profile *p, const char *output, bool replace, struct error *err);

#endif
