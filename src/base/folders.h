/*
 * Folders of our own. For a while: with a name that nobody can foresee, under $TMPDIR (where that
 * is an absolute path and we are not setuid) or /tmp. For good: under $XDG_CACHE_HOME or ~/.cache.
 */
#ifndef SONDE_BASE_FOLDERS_H
#define SONDE_BASE_FOLDERS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"

const char *temporary_root(void);

/* Makes the folder ROOT/sonde-NAME-unique; its path is in `path`, which was empty. */
int temporary_folder(const char *name, struct text *path, struct error *err);

/* Opens a new file whose name, in `path`, starts with what `path` held. The descriptor, or -1. */
int temporary_file(struct text *path);

/* Makes CACHE/sonde/NAME, mode 0700, and adds its path; false if there is no home or no leave. */
bool cache_folder(const char *name, struct text *path);
/* Opens a file of a cache for reading: one of our own that nobody else can write to. Or -1. */
int cache_open(const char *path);

#endif
