/*
 * What to sample on: an event's name as perf knows it, turned into what the kernel takes.
 * "cpu" (the default) is the kernel's cpu-clock, in nanoseconds on the CPU.
 */
#ifndef SONDE_EVENT_H
#define SONDE_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/record.h"

struct event {
    char name[96]; /* as it will stand in the recording */
    uint32_t type;
    uint64_t config, config1, config2;
    enum value_unit unit;
    bool timed;      /* counts ns: cpu-clock, task-clock */
    bool by_rate;    /* sampled so many times a second; otherwise every `period`-th */
    uint64_t period; /* 0: let by_rate decide */
    bool user_only, kernel_only;
};

/* One name: "cpu", "cycles", "cache-misses", "L1-dcache-load-misses", "page-faults",
 * "sched:sched_switch", "r01c2", a PMU's "pmu/event/"; with ":u" or ":k" for one side only and "@N"
 * for every N-th. FAULT_USAGE with the reason if it is unknown here. */
int event_parse(const char *text, struct event *out, struct error *err);

/* How the kernel is asked: sampling fields only; capture/perf_open.c adds the rest. */
void event_attr(const struct event *e, uint64_t rate, struct perf_event_attr *attr);

#endif
