/*
 * How processes that are not our children ended: the kernel's process connector tells every
 * exit status, where this user may listen (root, mostly). Best effort: what is missed stays
 * unknown.
 */
#ifndef SONDE_EXITS_H
#define SONDE_EXITS_H

#include <stdint.h>
#include <sys/types.h>

/* A descriptor to poll and read from, or -1 if listening is not permitted. */
int exits_open(void);
/* Calls for each process that has ended since; `status` as wait(2) gives it, time as clock_now.
 * Never blocks. */
void exits_read(int fd, void (*each)(void *context, pid_t pid, int status, uint64_t time),
                void *context);

#endif
