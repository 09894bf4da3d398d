/* One job, for people or into a file: what `sonde job show` prints. */
#ifndef SONDE_JOB_SHOW_H
#define SONDE_JOB_SHOW_H

#include "cmd/command.h"
#include "cmd/remote.h"

struct job_options {
    const char *server, *info, *recording, *event, *format, *output;
    uint64_t id, top;
    bool profile, bench, recordings, force, yes, json;
};

int job_show(struct invocation *inv, struct remote *r, unsigned id);

#endif
