/*
 * A recording that is still being written, as counts: every so often what it has gained since is
 * handed over, each time under a key of its own, until the recording is complete or its writer is
 * gone. Functions whose names are not known yet wait for the end, where the recording holds all.
 */
#ifndef SONDE_FOLLOWING_H
#define SONDE_FOLLOWING_H

#include <stdbool.h>

#include "store/batch.h"

struct following_options {
    const char *path;
    uint64_t every; /* ns */
    bool stacks, keep;
    int (*send)(void *context, struct batch *b, const char *key, struct error *err);
    void *context;
};

/* Returns when all has been handed over. SIGTERM makes the present state the last. */
int following_run(const struct following_options *o, struct error *err);

#endif
