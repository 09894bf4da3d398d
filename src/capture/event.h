/*
 * What to sample or count: an event's name as perf knows it, turned into what the kernel takes.
 * "cpu" (the default of recordings) is the kernel's cpu-clock, in nanoseconds on the CPU.
 */
#ifndef SONDE_EVENT_H
#define SONDE_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/record.h"

#define EVENT_NAME_MAX 192

struct event {
    char name[EVENT_NAME_MAX]; /* as it will stand in the recording */
    uint32_t type;
    uint64_t config, config1, config2;
    enum value_unit unit;
    bool timed;      /* counts ns: cpu-clock, task-clock */
    bool by_rate;    /* sampled so many times a second; otherwise every `period`-th */
    uint64_t period; /* 0: let by_rate decide */
    bool no_user, no_kernel, no_hv, no_guest, no_host, pinned;
    bool per_cpu; /* of a PMU beside the cores: counts on a CPU, for no task */
    uint8_t precise;
    double scale;       /* what one count stands for in `measure`; 1 for most */
    char measure[16];   /* "Joules"; "" for plain counts */
    char encoding[256]; /* as libpfm4 understood it, or "" */
};

/*
 * One name: "cpu", "cycles", "L1-dcache-load-misses", "page-faults", "sched:sched_switch", "r01c2",
 * "pmu/event/", "pmu/config=1,umask=2/", or one of libpfm4's; with modifiers of perf (":u", ":k",
 * ":ukhGHpD") and "@N" for every N-th. FAULT_USAGE if it is no event's name, FAULT_MISSING if it is
 * one but this machine or user does not have it; both with the reason.
 */
int event_parse(const char *text, struct event *out, struct error *err);

/* Between two samples, in the event's unit; 0 where the kernel is to find it for a rate. */
uint64_t event_period(const struct event *e, uint64_t rate);
/* How the kernel is asked to sample: sampling fields only; capture/perf_open.c adds the rest. */
void event_attr(const struct event *e, uint64_t rate, struct perf_event_attr *attr);
/* How it is asked to count: disabled, with the times enabled and running beside the value. */
void event_count_attr(const struct event *e, struct perf_event_attr *attr);

/* perf_event_open(2), closed on exec. */
int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group);
/* Why event_open failed with `code`, as half a sentence: "this machine has no such counter". */
const char *event_refusal(const struct event *e, int code);

/*
 * A list as -e takes it: names with commas between, "{a,b}" for a group that is counted together.
 * Calls for each name with the number of its group, 0 for none; stops at the first non-zero.
 */
int event_split(const char *list,
                int (*each)(void *context, const char *name, unsigned group, struct error *err),
                void *context, unsigned *groups, struct error *err);

#endif
