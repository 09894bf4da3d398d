/*
 * Counters of the kernel, opened for a set of events on tasks or CPUs and read as one value an
 * event. An event that cannot be opened is told apart in `struct counts` and stops no other.
 */
#ifndef SONDE_COUNTER_H
#define SONDE_COUNTER_H

#include <sys/types.h>

#include "capture/event.h"
#include "profile/counts.h"

#define COUNTER_EVENTS_MAX 256

/* One that was asked for: what event_parse made of it, beside its row in the counts. */
struct counter_event {
    struct event event;
    bool broken; /* cannot be counted: its row says why */
};

struct counter_plan {
    VECTOR(struct counter_event) events; /* as counts.events */
    unsigned groups;
};

/* "-e" lists into the plan and rows into the counts. FAULT_USAGE only for what is no event. */
int counter_plan_add(struct counter_plan *p, struct counts *c, const char *list, struct error *err);
/* What perf stat counts unless told otherwise. */
int counter_plan_default(struct counter_plan *p, struct counts *c, struct error *err);
void counter_plan_release(struct counter_plan *p);

struct counter_fd {
    int fd;
    uint32_t event; /* index */
};

struct counters {
    struct counter_plan *plan;
    struct counts *counts;
    VECTOR(struct counter_fd) fds;
    VECTOR(int) leaders; /* of the groups of one task or CPU */
};

enum counter_how { COUNTER_ON_EXEC, COUNTER_TREE, COUNTER_TASK };

void counters_init(struct counters *s, struct counter_plan *plan, struct counts *c);
/* On a task: from its next exec on with all it starts, from counters_enable on with all it starts,
 * or it alone. FAULT_MISSING if it is gone. */
int counters_add_task(struct counters *s, pid_t tid, enum counter_how how, struct error *err);
int counters_add_cpus(struct counters *s, struct error *err); /* everything on all CPUs */
void counters_enable(struct counters *s);
/* One value an event, summed over tasks and CPUs. */
void counters_read(const struct counters *s, struct counts_value *out);
void counters_release(struct counters *s);

#endif
