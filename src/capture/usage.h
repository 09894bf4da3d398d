/*
 * What the kernel accounts to processes without being asked: times, faults, switches, I/O. The
 * source of `sonde stat`'s closing lines, and of its events where perf events are refused.
 */
#ifndef SONDE_USAGE_H
#define SONDE_USAGE_H

#include <sys/resource.h>
#include <sys/types.h>

#include "capture/counter.h"
#include "profile/counts.h"

/* Of a process that runs or has ended but is not yet reaped, with the children it waited for. What
 * cannot be known stays 0. */
void usage_of_process(pid_t pid, struct counts_usage *u);
/* Page faults of its own, and switches of its threads, so far; false if it is gone. */
bool usage_pulse(pid_t pid, uint64_t *faults, uint64_t *switches);
/* Bytes read and written by it and by the children that it waited for. */
void usage_add_io(pid_t pid, struct counts_usage *u);
/* ns that its main thread waited for a CPU. */
void usage_add_delay(pid_t pid, struct counts_usage *u);
/* From wait4(2): whole figures of the process and of all it waited for. */
void usage_of_child(const struct rusage *r, struct counts_usage *u);
/* after - before, field by field. */
void usage_between(const struct counts_usage *before, const struct counts_usage *after,
                   struct counts_usage *out);
/* ns that the hypervisor took from all CPUs since the machine started. */
uint64_t usage_stolen(void);

/* Fills in software events that perf events refused but that the accounts know. */
void usage_fill(struct counts *c, const struct counts_usage *u, struct counts_value *values);

#endif
