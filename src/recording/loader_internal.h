/* The loader's state, shared by loader.c (life, files) and decode.c (records). */
#ifndef SONDE_LOADER_INTERNAL_H
#define SONDE_LOADER_INTERNAL_H

#include "base/vector.h"
#include "recording/loader.h"
#include "wire/codec.h"

/* From an identifier in the recording to an index in the profile, or PROFILE_NONE. */
struct translation {
    uint32_t *data;
    size_t len, cap;
};

#define GATHERED 256

struct loader {
    struct profile *profile;
    struct load_options options;
    struct translation strings, events, processes, threads, modules, functions, frames, stacks,
        series;
    bool stacks_moved; /* some stack's index is not its identifier */
    size_t gaps;       /* identifiers that were never defined, bounded */
    uint64_t start;
    uint64_t malformed;
    struct profile_sample gathered[GATHERED]; /* decoded, not yet counted */
};

/* Applies one record; false if it makes no sense. */
bool loader_apply(struct loader *l, uint64_t type, struct cursor *c);

#endif
