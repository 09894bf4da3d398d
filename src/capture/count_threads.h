/*
 * Counts of every thread by itself, of tasks and of all that they start. The kernel tells what a
 * thread had counted when it ends; what is left of the sum at the end is the first task's own.
 */
#ifndef SONDE_COUNT_THREADS_H
#define SONDE_COUNT_THREADS_H

#include "capture/counter.h"

struct count_threads;

struct count_threads *count_threads_new(struct counter_plan *plan, struct counts *c);
/* A task and what it starts from now on, or from its next exec on. FAULT_MISSING if it is gone. */
int count_threads_add(struct count_threads *t, pid_t pid, pid_t tid, bool on_exec,
                      struct error *err);
void count_threads_enable(struct count_threads *t);
/* Takes in what has been told so far; to be called often enough, or some of it is lost. */
void count_threads_drain(struct count_threads *t);
/* Descriptors to poll. */
size_t count_threads_fds(const struct count_threads *t, const int **fds);
/* Rows into counts.threads, and the sums of all into `out`. */
void count_threads_finish(struct count_threads *t, struct counts_value *out);
void count_threads_free(struct count_threads *t);

#endif
