/*
 * A process in a PID namespace of its own, a container's: its memory has other numbers for its
 * threads than we have, and than the kernel's records have for us.
 */
#ifndef SONDE_NESTING_H
#define SONDE_NESTING_H

#include <sys/types.h>

#include "base/map.h"

struct nesting {
    pid_t pid, inner;       /* the process's, here and there */
    struct map here, there; /* threads: their number there -> here, and back */
};

/* `inner` is the process's own idea of its number, 0 to look it up. */
void nesting_init(struct nesting *n, pid_t pid, pid_t inner);
void nesting_release(struct nesting *n);

/* The number here of a thread that has the number `inner` there; that one itself where both are
 * the same, or the thread is gone. */
pid_t nesting_here(struct nesting *n, pid_t inner);

#endif
