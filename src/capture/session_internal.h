/* The recorder's state, shared by session.c (life), collect.c (records) and symbolize.c. */
#ifndef SONDE_SESSION_INTERNAL_H
#define SONDE_SESSION_INTERNAL_H

#include "base/text.h"
#include "capture/module.h"
#include "capture/offcpu.h"
#include "capture/pythons.h"
#include "capture/resident.h"
#include "capture/session.h"
#include "capture/stacks.h"
#include "capture/tasks.h"

struct session {
    const struct session_options *options;
    struct session_result *result;
    struct writer *writer;
    struct perf *perf;     /* or NULL, and then */
    struct agents *agents; /* samplers inside the target, see inside.h; with perf for Python and */
    struct traces *traces; /* what they trace, or NULL */
    struct heaps *heaps;   /* the heap, or NULL */
    struct inside *inside; /* what they brought */
    struct pythons *pythons;   /* interpreters seen from outside, or NULL */
    struct resident *resident; /* curves of memory, or NULL */
    struct modules modules;
    struct tasks tasks;
    struct stacks stacks;
    struct offcpu offcpu;
    uint32_t event[PERF_EVENTS_MAX]; /* in the recording */
    struct launch launch;
    pid_t child;     /* the command, 0 once reaped or when attached */
    int signals;     /* signalfd */
    int exits;       /* see exits.h, or -1 */
    uint64_t reaped; /* when the command was, or 0 */
    uint64_t seen;   /* what is older has been collected */
    uint64_t start, last_flush, last_progress, last_sweep;
    uint64_t lost, throttled;
    uint64_t target_extra;                   /* ns that the agents say they took */
    uint32_t remarked;                       /* what was said of the agents already */
    uint64_t lost_tasks;                     /* records on processes, threads and mappings */
    uint64_t lost_told[PERF_EVENTS_MAX + 1]; /* by records, event by event */
    unsigned interrupts;
    unsigned timeouts; /* how often the command was told that its time is over */
    bool begun;        /* the command runs: what went before was ours; always so when attached */
    bool stop;
    struct control *control; /* or NULL */
    struct budget *budget;   /* or NULL */
    uint64_t target_cpu;     /* ns that samples of a clock stand for */
    uint64_t agents_cost;    /* ns that the agents have spent sampling, so far */
    uint64_t heap_own;       /* CPU ns of ours that went to looking at heaps, with a budget */
    uint64_t rate;           /* as it is now */
    bool cpu_off;            /* sampling was stopped */
};

/* Whether samples of the process are wanted now. */
static inline bool session_wants(const struct session *s, const struct process *p)
{
    return !s->cpu_off && !p->muted;
}

/* One command of control.h. */
void session_command(void *context, char *line, struct text *answer);

/* Takes everything older than `until` out of the rings and into the recording. */
void collect_records(struct session *s, uint64_t until);
/* Losses, notes, CPU times of what still lives. */
void collect_finish(struct session *s, uint64_t now);
/* Names for every frame. */
void session_symbolize(struct session *s);

#endif
