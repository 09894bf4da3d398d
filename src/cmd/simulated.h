/* A run under valgrind's model, counted and read: for `sonde stat --simulate`. */
#ifndef SONDE_SIMULATED_H
#define SONDE_SIMULATED_H

#include "base/error.h"
#include "profile/counts.h"
#include "profile/profile.h"

struct simulated_options {
    bool calls;
    const char *record; /* a recording to make, or NULL */
    bool replace;
    char *const *command;
};

struct simulated {
    struct profile profile; /* with events named as perf's */
    int status;             /* for our caller */
};

/* To be released in every case. */
int simulated_run(struct simulated *m, const struct simulated_options *o, struct counts *c,
                  struct error *err);
void simulated_release(struct simulated *m);

#endif
