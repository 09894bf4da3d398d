/*
 * A finer clock than the timer: a perf event on the CPU time of the calling thread, whose overflow
 * comes as the agent's signal. It runs on credit that the handler renews, so that few signals pile
 * up while they are blocked. The thread's timer stays, slowed down, and tells when the program has
 * closed the event's descriptor.
 *
 * The descriptor is close-on-exec and numbered out of the program's way. Signal-safe.
 */
#ifndef SONDE_AGENT_CLOCK_H
#define SONDE_AGENT_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct agent_thread;

struct clock_state {
    int32_t fd;     /* + 1; 0: none */
    bool refused;   /* not to be tried again */
    uint32_t ticks; /* signals since the timer looked */
    uint32_t used;  /* of the credit */
    uint64_t id;    /* of the event: what else may have its number has not */
    uint64_t cpu;   /* of the thread, when it was sampled last */
};

/* For the calling thread, whose timer runs: opens and starts it, slows the timer down. */
void clock_start(struct agent_thread *t);
/* Stops it for good; the thread may be another one. */
void clock_stop(struct agent_thread *t);
/* Whether the signal comes from an event of ours; *thread is the calling one, or NULL if it is past
 * or has stopped its clock. */
bool clock_of_signal(const siginfo_t *info, struct agent_thread **thread);
/* CPU ns since the sample before; 0: the signal is one of several that had to wait, and stands for
 * nothing. */
uint64_t clock_value(struct agent_thread *t);
/* The slowed timer has run out. If the clock is no more, the timer is on its own again, and this is
 * the CPU ns since the sample before; else 0. */
uint64_t clock_watch(struct agent_thread *t);
/* Around an exec, which keeps pending signals but not their handlers. */
void clock_pause(void);
void clock_resume(void);
/* In a forked child: closes what came along of its parent's. */
void clock_forget(void);

#endif
