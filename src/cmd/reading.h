/* How commands read a file: with a line that says how far it is, and names for bare addresses. */
#ifndef SONDE_READING_H
#define SONDE_READING_H

#include "formats/open.h"

/* profile_open, or profile_open_as if `format` is not NULL. On a terminal, progress goes to
 * standard error once it has taken most of a second. Addresses of other tools' files, which hold no
 * names, are looked up in the files of this machine; what is missing becomes a note of its module.
 * Of a file that is not whole but could be read, standard error is told. */
int reading_open(const char *path, const struct format *format, const struct load_options *options,
                 struct profile *p, struct error *err);

#endif
