/*
 * The live side of a recording: a process of its own beside the collector, with a lower priority,
 * that reads the file as it grows, serves the page to any number of viewers and publishes to Redis.
 * If it fails, the recording goes on without it.
 */
#ifndef SONDE_LIVE_LIVE_H
#define SONDE_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/* What it has to say at its end; in memory that both share. */
struct live_report {
    uint64_t sent, unsent; /* messages to Redis */
    char error[200];       /* why the last one was not */
};

struct live_options {
    const char *recording;      /* path, which need not be there yet */
    const char *control;        /* path of the session's socket, likewise; or NULL */
    bool serve;                 /* the page, at */
    const char *bind;           /* NULL: 127.0.0.1 */
    uint16_t port;              /* 0: any free one */
    uint64_t linger;            /* ns that the page stays after the end */
    const char *redis;          /* URL to publish to, or NULL */
    uint64_t interval;          /* ns between two of its tables */
    unsigned limit;             /* rows of them */
    struct live_report *report; /* live_start sets it */
};

struct live_process {
    pid_t pid;
    int tell;            /* a byte here: the recording is there; closed: it is finished */
    struct text address; /* of the page, with its token; empty if it is not served */
};

/* Starts the process; returns when it serves, or cannot. */
int live_start(struct live_options *o, struct live_process *p, struct error *err);
/* The recording is there. */
void live_begun(struct live_process *p);
/* The recording is finished: waits until viewers have seen the end, not for ever. */
void live_end(struct live_process *p, const struct live_options *o, struct live_report *report);

#endif
