/* Which version an interpreter is; never leaves the room. */
#ifndef SONDE_CPYTHON_VERSION_H
#define SONDE_CPYTHON_VERSION_H

#include "cpython/cpython.h"

#define VERSION_MICRO_UNKNOWN 255

struct version {
    uint8_t major, minor, micro;
    bool prerelease; /* alpha or beta; a candidate has its release's layout */
};

/* From Py_Version, else from the text that Py_GetVersion makes, else from the module's path. */
int version_find(const struct cpython_module *module, const struct cpython_memory *memory,
                 struct version *out);

/* The flags in a file's name: 't' of "python3.13t", 'd' of "libpython3.6dm.so.1.0". */
bool version_path_has(const char *path, char flag);

/* "3.8.18", "3.9.0rc1+ (main, ...": at most `size` bytes of text, not necessarily ended. Pure. */
bool version_parse(const char *text, size_t size, struct version *out);

#endif
