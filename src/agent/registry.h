/*
 * Which threads are observed: their private halves. No locks, no libc: every function may run in a
 * signal handler, and in a child that was forked while another thread was in here.
 */
#ifndef SONDE_AGENT_REGISTRY_H
#define SONDE_AGENT_REGISTRY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"

/* A private half for a new thread, or NULL (counted as refused). */
struct agent_thread *registry_claim(void);
void registry_unclaim(struct agent_thread *t);
void registry_refuse(void); /* counts a thread that goes unobserved */

/* The thread has its number and its stack: shows it in the segment and arms its timer. */
void registry_go(struct agent_thread *t);
bool registry_knows(int32_t tid);

/* Whether the signal is from a timer of ours; *thread is whose, or NULL if that thread is past. */
bool registry_of_signal(const siginfo_t *info, struct agent_thread **thread);

/* Stops a thread's timer; stops or starts those of all. */
void registry_disarm(struct agent_thread *t);
void registry_disarm_all(void);
void registry_arm_all(void);
/* In a new segment: every thread takes a place there, then its timer runs. */
void registry_begin_again(void);

#endif
