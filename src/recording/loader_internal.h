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

/* A thread's spans that have begun and not ended. */
struct open_spans {
    VECTOR(uint32_t) span; /* in the profile; PROFILE_NONE if not kept */
};

struct loader {
    struct profile *profile;
    struct load_options options;
    struct translation strings, events, processes, threads, modules, functions, frames, stacks,
        series;
    VECTOR(struct open_spans) open; /* by thread of the profile */
    bool stacks_moved;              /* some stack's index is not its identifier */
    size_t gaps;                    /* identifiers that were never defined, bounded */
    uint64_t start;
    uint64_t malformed;
    struct profile_sample gathered[GATHERED]; /* decoded, not yet counted */
};

bool loader_inside(const struct loader *l, uint64_t time); /* of the range that was asked for */
bool loader_on_spans(struct loader *l, struct cursor *c);  /* in decode_spans.c */
/* Spans that are still open last until the end. */
void loader_end_spans(struct loader *l);

/* Applies one record; false if it makes no sense. */
bool loader_apply(struct loader *l, uint64_t type, struct cursor *c);

#endif
