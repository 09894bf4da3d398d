/*
 * From a recording to a profile: decodes records, block by block, so that a file
 * and a live stream go the same way. Identifiers in the recording are translated, so
 * several recordings may be loaded into one profile. What is malformed is left
 * out and counted; loading never fails for it.
 */
#ifndef SONDE_LOADER_H
#define SONDE_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"
#include "recording/block.h"

struct load_options {
    uint64_t from,
        to; /* ns since the recording's start; to 0: no bound. Samples outside are left out */
    bool hide_interpreter; /* see profile/interpreter.h; in profile_open */
    bool keep_samples;     /* fill profile.samples too */
    bool samples_apart;    /* and only it: no sums by stack of what has a time */
    bool keep_spans;       /* and profile.spans */
    void (*progress)(void *context, uint64_t done, uint64_t size); /* or NULL */
    void *context;
};

struct loader;

struct loader *loader_new(struct profile *p, const struct load_options *options);
/* Records of one block. */
void loader_feed(struct loader *l, const uint8_t *records, size_t len);
uint64_t loader_malformed(const struct loader *l); /* records left out so far */
void loader_free(struct loader *l);

/* The whole file; "-" is standard input. Damage becomes a warning among the profile's notes. The
 * profile is initialised by the caller and to be released by it in every case. */
int recording_load(const char *path, const struct load_options *options, struct profile *p,
                   struct error *err);

#endif
