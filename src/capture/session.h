/*
 * One run of the recorder: starts or attaches, collects until the tree has ended (or it is
 * told to stop), symbolises, and closes the recording.
 */
#ifndef SONDE_SESSION_H
#define SONDE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/launch.h"
#include "capture/perf.h"
#include "wire/heap.h"

struct agents_trace;

struct session_progress {
    enum { SESSION_RECORDING, SESSION_SYMBOLIZING } phase;
    uint64_t elapsed; /* ns */
    size_t processes, threads;
    uint64_t samples, lost;
    uint64_t done, total; /* while symbolising: addresses */
};

struct session_options {
    const char *output;
    bool replace;
    const struct launch_options *launch; /* what to start, or NULL to attach */
    const pid_t *attach;                 /* processes that run already; their children come along */
    size_t attach_count;
    struct perf_options perf;
    enum heap_mode heap;
    uint64_t heap_interval, agent_memory; /* bytes; 0 for the usual */
    const char *invite; /* with attach: a file that tells the process how to take part; or NULL */
    const struct agents_trace *trace; /* what to trace, or NULL */
    uint64_t trace_entries;           /* calls kept of a process; 0: all */
    uint64_t trace_min;               /* ns: shorter calls are in the sums alone */
    uint64_t rss_rate;                /* looks at memory a second, 0 for none; see resident.h */
    uint64_t duration;                /* ns, 0 for none */
    uint64_t timeout;                 /* ns after which the command is ended, 0 for never */
    double budget;                    /* % of the target's CPU time to keep to, 0 for none */
    bool no_symbols;
    bool no_python;      /* look at interpreters as at any program */
    bool python_inside;  /* the agent samples them all the time */
    bool python_outside; /* read them from outside, unless agents are there for something else */
    bool pymalloc;  /* with the heap: each object of Python's, not only its allocator's arenas */
    bool gil;       /* only threads that hold their interpreter's lock */
    bool pause;     /* threads of Python that run already are stopped while they are read */
    bool waiting;   /* time that others wait for a lock is charged to who holds it as well */
    bool no_native; /* of stacks with Python in them, the Python frames alone */
    bool debuginfod;
    bool live;         /* someone looks on: the heap is told of stack by stack as it changes */
    bool controllable; /* take commands while it runs, see control.h */
    void (*begun)(void *context); /* or NULL: the recording is there and everything is in place */
    void *begun_context;
    void (*progress)(void *context, const struct session_progress *p); /* or NULL; two a second */
    void *context;
};

struct session_result {
    bool started;   /* the command ran */
    int exec_errno; /* why it did not */
    int status;     /* of the command, as wait(2) gives it; meaningful if `ended` */
    bool ended;
    pid_t left_running; /* the command, when recording stopped before it did */
    uint64_t samples, lost;
    size_t processes, threads;
    uint64_t duration;
    uint64_t bytes;
    const char *instead; /* what could not be had here, and was done in its place; or NULL */
};

int session_run(const struct session_options *o, struct session_result *r, struct error *err);

#endif
