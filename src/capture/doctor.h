/*
 * What works on this machine, and for one program or process: each finding says how it is, why,
 * what sonde does where it is not well, and what would make it better. For `sonde doctor`.
 */
#ifndef SONDE_DOCTOR_H
#define SONDE_DOCTOR_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"

enum doctor_state { DOCTOR_WELL, DOCTOR_LIMITED, DOCTOR_MISSING };

struct doctor_finding {
    const char *subject; /* "perf events" */
    enum doctor_state state;
    const char *why;
    const char *instead; /* what sonde does then, or "" */
    const char *cure;    /* a command or a word of advice, or "" */
};

struct doctor {
    struct arena arena;
    VECTOR(struct doctor_finding) findings;
};

void doctor_machine(struct doctor *d);
/* A program file, or a running process; FAULT_MISSING if there is none, FAULT_INPUT if the file is
 * no program. */
int doctor_binary(struct doctor *d, const char *path, struct error *err);
int doctor_process(struct doctor *d, pid_t pid, struct error *err);
/* What the kernel lets this process do, of what sonde could use. */
void doctor_capabilities(struct doctor *d);
/* Whether a Redis answers at "host:port"; waits for a second at most. */
void doctor_redis(struct doctor *d, const char *where);
void doctor_release(struct doctor *d);

/* For the files of this room that find something. */
void doctor_add(struct doctor *d, const char *subject, enum doctor_state state, const char *instead,
                const char *cure, const char *why, ...) __attribute__((format(printf, 6, 7)));

#endif
