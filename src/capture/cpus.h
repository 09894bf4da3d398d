/* The CPUs that the kernel schedules on. */
#ifndef CAPTURE_CPUS_H
#define CAPTURE_CPUS_H

#include <stddef.h>

struct cpus {
    int *data;
    size_t len, cap;
};

/* Appended to `out`; CPU 0 alone if sysfs does not tell. */
void cpus_online(struct cpus *out);

#endif
