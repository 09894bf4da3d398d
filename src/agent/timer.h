/*
 * A thread's CPU timer. The kernel looks at it at its tick, so it fires less often than asked when
 * the interval is shorter than a tick; the overrun that the signal carries tells how many
 * intervals have passed, and their sum stays the thread's CPU time. Signal-safe.
 */
#ifndef SONDE_AGENT_TIMER_H
#define SONDE_AGENT_TIMER_H

#include <stdint.h>

/* Starts a timer on the CPU time of thread `tid` of this process whose signal goes to that thread
 * with `cookie`. The first interval is cut at a random place, so that short threads are neither
 * always nor never seen. The timer's number, or a negative errno. */
int timer_start(int32_t tid, uint64_t interval, int signal, uint64_t cookie);
void timer_change(int timer, uint64_t interval); /* from now on; 0: never */
void timer_stop(int timer);

#endif
