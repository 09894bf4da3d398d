/*
 * The kernel's perf events on a set of tasks and all that they start: opened on every
 * CPU with inheritance (the clock: on the CPU itself, see tree_filter.h), read from three rings a
 * CPU (samples; the lifecycle of tasks, which must not drown in samples; counts at a task's end),
 * handed out in the order of time.
 */
#ifndef SONDE_PERF_H
#define SONDE_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/commands.h"
#include "capture/event.h"
#include "capture/perf_record.h"

#define PERF_EVENTS_MAX 16

struct perf_options {
    struct event event[PERF_EVENTS_MAX];
    size_t events;
    uint64_t rate;
    bool wall;         /* context switches too, with the stack that blocks */
    bool threads_only; /* do not follow into child processes */
    bool no_kernel;    /* leave kernel frames out though they are permitted */
    bool prompt;       /* wake the reader at each sample */
    bool bell;         /* where it can be had, only at those of Python: see perf_tell */
};

/* What was possible; for notes in the report. */
struct perf_ability {
    bool kernel;        /* kernel samples and frames are there */
    bool build_ids;     /* the kernel tells build-ids with mappings */
    size_t ring_bytes;  /* of each sample ring */
    size_t stack_bytes; /* of user stack copied with a sample */
    size_t task_ring_bytes;
};

struct perf;

/* Prepares; nothing is opened yet. */
struct perf *perf_new(const struct perf_options *options);
/* Lets the CPUs' own clock sample a process and all it starts, where that can be had; to be called
 * before perf_add_task on its threads. With `now` it runs at once, otherwise from perf_enable. */
void perf_add_process(struct perf *p, pid_t pid, bool now);
/* No more samples of a process by the CPUs' clock until it starts another program; what it starts
 * is sampled. Nothing happens where each task has its own clock. */
void perf_mute(struct perf *p, pid_t pid, bool mute);
/* Wakes the reader at each sample of the process and of those that it forks, until it starts
 * another program; with options.bell, where that can be had. Who runs a file named python is told
 * of anyway.
 */
void perf_tell(struct perf *p, pid_t pid);
/* Copies of Python's frames, where the kernel makes them, from the first call on; or NULL. */
struct frame_copies *perf_copies(struct perf *p);
/* What its programs are called with, or NULL; `p` keeps it. */
struct commands *perf_commands(struct perf *p);
/* Opens every event on a task (a thread) for each CPU. With `on_exec` they start when it calls
 * exec; otherwise at perf_enable. FAULT_SYSTEM with the way out in the sentence; *unavailable tells
 * that perf as such is not to be had here (so that another way may be tried). */
int perf_add_task(struct perf *p, pid_t tid, bool on_exec, bool *unavailable, struct error *err);
void perf_enable(struct perf *p);
void perf_disable(struct perf *p);
/* Samples only: word of tasks and mappings goes on coming. */
void perf_sample(struct perf *p, bool on);
/* Another rate for the events that have one, from now on. Where each task has its own clock, the
 * kernel goes on as before and perf_weigh lets fewer samples through; false if more are wanted than
 * it takes. */
bool perf_set_rate(struct perf *p, uint64_t rate);
/* What a sample stands for, in the unit of its event; 0: for nothing, it is one too many. */
uint64_t perf_weigh(struct perf *p, int event, const struct perf_record *r);
const struct perf_ability *perf_ability(const struct perf *p);
size_t perf_cpus(const struct perf *p); /* as many counts of CPU time come at a thread's end */

/* Descriptors to poll for readability; wakes when a ring is a quarter full. */
size_t perf_poll_fds(const struct perf *p, const int **fds);

/* Takes note of what the rings hold now; call before a round of perf_next. */
void perf_refresh(struct perf *p);
/* Calls for each record of a sample ring that has come since the last scan, in no order of time; it
 * stays where it is. */
void perf_scan(struct perf *p, void (*each)(void *context, const struct perf_record *r),
               void *context);
/* The next record in time order that is older than `until`. True and *r (valid until the next
 * call), or false when there is none. Malformed records are skipped and counted. */
bool perf_next(struct perf *p, uint64_t until, struct perf_record *r);
uint64_t perf_malformed(const struct perf *p);

/* What the kernel has counted up to now, over all tasks, also those that have ended. */
struct perf_totals {
    uint64_t cpu;                       /* ns; 0 if unknown */
    uint64_t unfollowed;                /* processes that there was no room to follow */
    uint64_t lost[PERF_EVENTS_MAX + 1]; /* samples not delivered; the last: those of --wall */
};
void perf_read_totals(const struct perf *p, struct perf_totals *out);

/* Index into options.event of the event that a record's id belongs to; PERF_EVENTS_MAX for the
 * blocking samples of --wall, -1 for none. */
int perf_event_of(const struct perf *p, uint64_t id);
/* Index of the event that the blocking samples of --wall are too, context-switches, or -1. It is
 * not opened beside them: the kernel gives samples of one switch the same id. */
int perf_switches(const struct perf *p);

void perf_free(struct perf *p);

#endif
