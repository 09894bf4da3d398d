/*
 * The heaps of a session's processes: what their agents count (heap_view.h), turned into curves
 * while they run and into cells by thread and stack when they end. Events and series are named in
 * profile/profile.h and docs/FORMAT.md.
 */
#ifndef SONDE_CAPTURE_HEAP_H
#define SONDE_CAPTURE_HEAP_H

#include <stdint.h>

#include "capture/agents.h"

struct session;
struct heaps;

struct heaps *heaps_new(struct session *s);
void heaps_free(struct heaps *h); /* NULL-safe */

/* The agents' words, for the sink; p->user is the heaps'. */
void heaps_on_process(struct heaps *h, struct agents_process *p);
void heaps_on_mapping(struct heaps *h, struct agents_process *p, const struct agents_mapping *m);
void heaps_on_heap(struct heaps *h, struct agents_process *p);
void heaps_on_process_end(struct heaps *h, struct agents_process *p);

/* A process of the tree runs a program that has no agent in it. */
void heaps_on_stranger(struct heaps *h, pid_t pid, const char *exe, bool is_static);

/* After each drain, with the time before it: another point of each curve, if it is time. */
void heaps_tick(struct heaps *h, uint64_t now);
/* The program has set a mark, and waits: what was done by then is put down as of that time, which
 * is returned; it is a little later if some of it was put down before. */
uint64_t heaps_mark(struct heaps *h, uint64_t time);
/* The agents that were brought into running processes take their hooks out. */
void heaps_leave(struct heaps *h);
/* After the last process has ended for the agents: the peak of the tree. */
void heaps_finish(struct heaps *h);

/* While it runs. `pid` 0 stands for all. */
/* Tells the recording what has changed since the last time, stack by stack. */
void heaps_tell(struct heaps *h);
/* Who holds what now, as an event of its own, whose name is put into `name`. How many processes. */
size_t heaps_snapshot(struct heaps *h, pid_t pid, char name[32], uint64_t *bytes);
/* Samples of sampled mode 2^level times as far apart as was asked for, in all processes. */
void heaps_set_level(struct heaps *h, uint32_t level);
/* ns that the agents have spent on samples of the heap so far. */
uint64_t heaps_cost(const struct heaps *h);
/* Allocations are not recorded any more, or again; frees are all the same. How many processes. */
size_t heaps_pause(struct heaps *h, pid_t pid, bool pause);
size_t heaps_running(const struct heaps *h, pid_t pid); /* processes that are recorded */

#endif
