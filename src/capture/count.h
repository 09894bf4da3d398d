/*
 * One run that is counted: a command and all it starts, processes that run already, or whole
 * CPUs. What it counts goes into a struct counts as one more run (or as intervals and threads).
 */
#ifndef SONDE_COUNT_H
#define SONDE_COUNT_H

#include "capture/counter.h"
#include "capture/launch.h"

struct count_options {
    const struct launch_options *launch; /* counted, or, with one of the next two, what is waited
                                            for; may be NULL then */
    const pid_t *attach;
    size_t attach_count;
    bool all_cpus;
    bool per_thread;
    uint64_t duration; /* ns; 0: until it ends */
    uint64_t interval; /* ns; 0: none */
    /* After each interval, with the newest last in c->intervals; may be NULL. */
    void (*on_interval)(void *context, const struct counts *c);
    void *context;
};

struct count_result {
    bool started;   /* the command ran */
    int exec_errno; /* why it did not */
    int status;     /* of the command, as wait(2) gives it; if `ended` */
    bool ended;
    bool interrupted; /* somebody asked us to stop */
};

/* `plan` and `c` belong together and may be used for several runs. */
int count_run(const struct count_options *o, struct counter_plan *plan, struct counts *c,
              struct count_result *r, struct error *err);

#endif
