/*
 * Starts the command, held back until everything is in place to watch it. With sonde and
 * without, it finds the same signals, limits, descriptors and environment (but for what the user
 * asked).
 */
#ifndef SONDE_LAUNCH_H
#define SONDE_LAUNCH_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/resource_limits.h"

struct launch_options {
    char *const *argv;      /* NULL-terminated */
    const char *cwd;        /* or NULL */
    const char *const *env; /* "K=V" to add or replace */
    size_t env_count;
    const char *const *agent; /* "K=V" that the agent needs, NULL-terminated; or NULL */
    cpu_set_t *cpus;          /* or NULL */
    struct limits *limits;    /* or NULL */
    bool silent;              /* what it writes goes nowhere */
};

struct launch {
    pid_t pid;
    int go;     /* a byte here lets it exec */
    int failed; /* tells what failed; end of file if it went well */
};

int launch_start(const struct launch_options *o, struct launch *l, struct error *err);
/* Lets it run. If it could not be started it is reaped, and *exec_errno is why exec itself failed,
 * 0 if something else did. */
int launch_go(struct launch *l, const struct launch_options *o, int *exec_errno, struct error *err);
/* Ends it before it ran. */
void launch_cancel(struct launch *l);

/* The file that running `name` would execute, by PATH; false if there is none. */
bool launch_find(const char *name, char *out, size_t size);

/* Whether that is Python by its name, or a script for it. */
bool launch_is_python(const char *name);

/* "0,2-5" into a set; FAULT_USAGE names what is wrong, or the CPU that is not there. */
int launch_parse_cpus(const char *text, cpu_set_t *set, struct error *err);

#endif
