/*
 * The threads of this process that are observed. pthread_create hands each new thread a private
 * half before it starts; it then arms its own timer, and its end disarms it. Threads that came
 * without us (before the constructor, by clone) are found in /proc/self/task.
 */
#ifndef SONDE_AGENT_THREADS_H
#define SONDE_AGENT_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"

bool threads_init(void); /* once, in the constructor */

/* The calling thread, which is the process's first or a forked child's only one. `stack_low` and
 * `stack_end` are 0 if its stack is unknown. Takes no lock; NULL when it cannot be observed. */
struct agent_thread *threads_adopt_self(uint64_t stack_low, uint64_t stack_end);

/* Observes what /proc/self/task shows beyond what is known. In the constructor alone: a thread on
 * its way from pthread_create to threads_main would be taken twice. */
void threads_scan(void);

/* For pthread_create: reserves a private half; NULL when there is none, then the thread goes
 * unobserved (and is counted). threads_main runs the program's function in the new thread. */
struct agent_thread *threads_reserve(const pthread_attr_t *attr, void *(*start)(void *),
                                     void *argument);
void threads_cancel(struct agent_thread *t); /* the thread was not created after all */
void *threads_main(void *thread);

#endif
