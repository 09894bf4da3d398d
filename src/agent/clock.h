/*
 * A finer clock than the timer: a perf event on the CPU time of the calling thread, whose overflow
 * comes as the agent's signal. No descriptor stays open that the program could see, close or meet
 * again: the event lives by its mapped page, which a fork does not inherit and an exec drops.
 * Signal-safe.
 */
#ifndef SONDE_AGENT_CLOCK_H
#define SONDE_AGENT_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_thread;

struct clock_state {
    void *page;              /* of the event; NULL: none */
    uint32_t size;           /* of what is mapped there */
    uint64_t head, newest;   /* of the event's ring, when it was read last; its latest sample */
    uint64_t counted;        /* by the event, up to that sample: ns */
    uint64_t samples, bytes; /* read from it so far */
    bool refused;            /* not to be tried again */
    uint64_t cpu;            /* of the thread, when it was sampled last; only without a ring */
};

/* For the calling thread: from now on instead of its timer, if it can be had. */
void clock_start(struct agent_thread *t);
/* Stops it; the thread may be another one. */
void clock_stop(struct agent_thread *t);
/* Whether the signal comes from an event of ours; *thread is the calling one, or NULL if it is past
 * or has stopped its clock. */
bool clock_of_signal(const siginfo_t *info, struct agent_thread **thread);
/* CPU ns since the sample before; 0: the signal is one of several that had to wait, and stands for
 * nothing. */
uint64_t clock_value(struct agent_thread *t);
/* Where in the kernel the thread was when its event came, innermost first; how many, at most max.
 */
size_t clock_kernel(struct agent_thread *t, uint64_t *out, size_t max);
/* The collector has the kernel sample this process from now on: whoever is sampled once more takes
 * its leave. */
bool clock_is_handed_over(void);
void clock_leave(struct agent_thread *t);

/* Around an exec, which keeps pending signals but not their handlers. */
void clock_pause(void);
void clock_resume(void);

#endif
