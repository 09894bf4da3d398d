/* State shared by perf.c (reading) and perf_open.c (asking the kernel). */
#ifndef SONDE_PERF_INTERNAL_H
#define SONDE_PERF_INTERNAL_H

#include "base/map.h"
#include "base/vector.h"
#include "capture/perf.h"
#include "capture/ring.h"
#include "capture/tree_filter.h"
#include "unwind/arch.h"

#define UNWIND_PERF_COUNT ((unsigned)__builtin_popcountll(UNWIND_PERF_MASK))

struct perf_cpu {
    int cpu;
    struct ring samples, tasks, counts;
    int samples_fd, tasks_fd, counts_fd; /* of the events that own the rings; 0 for none yet */
};

enum { PERF_OF_TASKS = -1, PERF_OF_COUNTS = -2 };

struct perf_fd {
    int fd;
    int event; /* see perf_event_of, or one of the two below */
};

/* The clock's period since then. The kernel goes on telling the first one after a change. */
struct perf_period {
    uint64_t since, period;
};

struct perf {
    struct perf_options options;
    struct perf_ability ability;
    VECTOR(struct perf_cpu) cpus;
    VECTOR(struct perf_fd) fds;
    VECTOR(int) poll;
    struct map ids;     /* event id -> index, see perf_event_of */
    struct ring *taken; /* whose record was handed out last */
    uint64_t malformed;
    struct tree_filter *filter; /* the clock is that of the CPUs, kept to the tree; or NULL */
    bool tried_filter;
    int clock;                          /* index of the event that it stands for */
    VECTOR(struct perf_period) periods; /* that it was changed to, in order of time */
    uint64_t thin; /* without a filter: ns that a sample of a clock shall stand for, 0: as it is */
    uint64_t random;
    bool tells_lost; /* the kernel counts what it could not deliver, event by event */
};

void perf_find_cpus(struct perf *p);

#endif
