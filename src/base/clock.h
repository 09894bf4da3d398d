/* The one clock of every recording: CLOCK_MONOTONIC, in nanoseconds. */
#ifndef SONDE_CLOCK_H
#define SONDE_CLOCK_H

#include <stdint.h>

uint64_t clock_now(void);     /* monotonic */
uint64_t clock_wall(void);    /* since 1970, for names and headings only */
uint64_t clock_own_cpu(void); /* CPU time of this process, user and system */

#endif
