/*
 * Runs a command under valgrind, which counts in a model of a CPU: two levels of cache and a branch
 * predictor. Each process leaves a file in a folder of ours; formats/ reads them.
 */
#ifndef SONDE_SIMULATE_H
#define SONDE_SIMULATE_H

#include "base/error.h"
#include "base/vector.h"

enum simulate_model {
    SIMULATE_CACHE, /* cachegrind: functions and lines */
    SIMULATE_CALLS, /* callgrind: who calls whom as well, and forks without exec counted once */
};

struct simulate {
    char *folder;
    char options[8][160];
    VECTOR(char *) argv;  /* valgrind, its options, the command; ended by NULL */
    VECTOR(char *) files; /* what it left, after simulate_collect */
    size_t forked;        /* processes that went on without exec after a fork */
};

/* Makes the folder and the command line. FAULT_MISSING if there is no valgrind. */
int simulate_prepare(struct simulate *s, enum simulate_model model, char *const *command,
                     struct error *err);
/* After it ran. FAULT_SYSTEM with valgrind's own words if it left nothing. */
int simulate_collect(struct simulate *s, struct error *err);
void simulate_release(struct simulate *s); /* removes the folder */

#endif
