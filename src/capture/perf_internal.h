/* State shared by perf.c (reading) and perf_open.c (asking the kernel). */
#ifndef SONDE_PERF_INTERNAL_H
#define SONDE_PERF_INTERNAL_H

#include "base/map.h"
#include "base/vector.h"
#include "capture/perf.h"
#include "capture/ring.h"
#include "unwind/arch.h"

#define UNWIND_PERF_COUNT ((unsigned)__builtin_popcountll(UNWIND_PERF_MASK))

struct perf_cpu {
    int cpu;
    struct ring samples, tasks;
    int samples_fd, tasks_fd; /* of the events that own the rings; 0 while there are none */
};

struct perf {
    struct perf_options options;
    struct perf_ability ability;
    VECTOR(struct perf_cpu) cpus;
    VECTOR(int) fds;
    VECTOR(int) poll;
    struct map ids;     /* event id -> index, see perf_event_of */
    struct ring *taken; /* whose record was handed out last */
    uint64_t malformed;
};

void perf_find_cpus(struct perf *p);

#endif
