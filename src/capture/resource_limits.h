/*
 * What a command may use: priority, memory, CPU time a second. A control group where this user may
 * make one (version 2 or 1), else the limits that every process has, which bind each process by
 * itself; what was done is told in a sentence.
 */
#ifndef SONDE_RESOURCE_LIMITS_H
#define SONDE_RESOURCE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

struct limits {
    int nice; /* -20 to 19 */
    bool nice_given;
    const char *bound_to; /* the list of CPUs that launch binds it to, for the sentence; or NULL */
    uint64_t memory;      /* bytes; 0: none */
    double cpus;          /* how many CPUs' time: 0.5 is half of one; 0: none */

    char groups[2][256]; /* folders that were made, "" for none */
    bool own_memory;     /* each process bound by itself */
    struct text told;    /* what was done and what became of it: a sentence a line */
};

/* Before the command is started: makes control groups. What can be had neither way is FAULT_SYSTEM.
 */
int limits_prepare(struct limits *l, struct error *err);
/* For the command that waits: into the groups, with its own limits and priority. */
int limits_apply(const struct limits *l, pid_t pid, struct error *err);
/* When all of it has ended: tells whether limits were met, and removes the groups. May be called
 * again. */
void limits_finish(struct limits *l);
void limits_release(struct limits *l);

#endif
