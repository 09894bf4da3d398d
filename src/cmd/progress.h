/* Reading files that take a while, with a line that says how far it is. */
#ifndef SONDE_PROGRESS_H
#define SONDE_PROGRESS_H

#include "formats/open.h"

/* profile_open, or profile_open_as if `format` is not NULL; on a terminal, progress on standard
 * error once it has taken most of a second. */
int progress_open(const char *path, const struct format *format, const struct load_options *options,
                  struct profile *p, struct error *err);

#endif
