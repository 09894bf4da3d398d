/* What /proc tells of processes and threads. Every answer may be out of date when it arrives. */
#ifndef SONDE_PROC_H
#define SONDE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vector.h"

struct pids {
    pid_t *data;
    size_t len, cap;
};

/* Strings into `out`, cut to fit; false if the process is gone or hides it. */
bool proc_comm(pid_t pid, pid_t tid, char *out, size_t size);
bool proc_exe(pid_t pid, char *out, size_t size);
bool proc_arguments(pid_t pid, char *out, size_t size); /* separated by spaces */

/* CPU time of a thread so far in ns, 0 if unknown. */
uint64_t proc_thread_cpu(pid_t pid, pid_t tid);
uint64_t proc_peak_rss(pid_t pid); /* bytes, 0 if unknown */
uint64_t proc_rss(pid_t pid);      /* the same, now */

void proc_threads(pid_t pid, struct pids *out);     /* appends */
void proc_descendants(pid_t pid, struct pids *out); /* appends, parents first, without pid */
pid_t proc_parent(pid_t pid);                       /* 0 if unknown */

/* The state letter of /proc/PID/stat ('R', 'S', 'T', 'Z' ...), 0 if there is no such process. */
char proc_state(pid_t pid);
pid_t proc_tracer(pid_t pid); /* who traces it, 0 for nobody */
/* A thread's number in its own PID namespace, 0 if unknown. */
pid_t proc_innermost(pid_t pid, pid_t tid);

struct proc_mapping {
    uint64_t start, end, offset;
    const char *path; /* "" for anonymous memory */
};
/* Calls for each executable mapping. */
int proc_each_mapping(pid_t pid, void (*each)(void *context, const struct proc_mapping *m),
                      void *context, struct error *err);

#endif
