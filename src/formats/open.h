/*
 * One door for every command that reads profiles: sonde's own recordings and the
 * files of other tools, told apart by their content. This header is the one in the
 * room that opens onto recording/.
 */
#ifndef SONDE_OPEN_H
#define SONDE_OPEN_H

#include "formats/format.h"
#include "recording/loader.h"

/*
 * Reads `path` ("-" is standard input) into a profile that the caller has initialised and releases
 * in every case. A profile that holds something already is added to, as profile_merge does. After
 * a failure it is as it was, but for damage in a recording, which is a note and no failure.
 * `options` may be NULL.
 */
int profile_open(const char *path, const struct load_options *options, struct profile *p,
                 struct error *err);

/* The same for a format that is known, whatever the content looks like. */
int profile_open_as(const struct format *format, const char *path,
                    const struct load_options *options, struct profile *p, struct error *err);

#endif
