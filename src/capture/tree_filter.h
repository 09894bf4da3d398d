/*
 * Samples of a whole CPU, kept in the kernel to those of one tree of processes: small BPF programs
 * follow forks and let a sample pass only if its process belongs to the tree. A timer of the CPU
 * meets a process of half a millisecond as fairly as one of a minute; the timer that perf starts
 * anew for each task and CPU never fires in the former. Needs root (CAP_BPF and CAP_PERFMON), a
 * kernel that describes its types, and the first PID namespace.
 */
#ifndef SONDE_TREE_FILTER_H
#define SONDE_TREE_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/commands.h"
#include "capture/frame_copies.h"

struct tree_filter;

/* NULL if this kernel or user has no way to it. With `follow`, children belong to the tree; with
 * `bell`, word of samples of Python can be had at once. */
struct tree_filter *tree_filter_new(bool follow, bool bell);
/* Puts a process into the tree. 0, or -1. */
int tree_filter_add(struct tree_filter *f, pid_t pid);
/* No samples of it until it starts another program; its children are sampled. For those in the tree
 * alone, and for Python: one that is not muted any more is told of. */
void tree_filter_mute(struct tree_filter *f, pid_t pid, bool mute);
/* Rings at each sample of it and of those it forks, until it starts another program. */
void tree_filter_tell(struct tree_filter *f, pid_t pid);
/* Lets an event sample nothing outside the tree. 0, or -1. */
int tree_filter_apply(const struct tree_filter *f, int event_fd);
/* Lets an event of the tree's tasks ring, for those that are told of, and those that are muted: by
 * this event they are not. 0, or -1. */
int tree_filter_ring(const struct tree_filter *f, int event_fd);
/* Readable once it has rung, until it is hushed; -1 without. */
int tree_filter_bell(const struct tree_filter *f);
void tree_filter_hush(struct tree_filter *f);
/* Copies of Python's frames at samples of the clock, from the first call on; NULL if they cannot be
 * had. `f` keeps them. */
struct frame_copies *tree_filter_copies(struct tree_filter *f);
/* What the tree's programs are called with, or NULL; `f` keeps it. */
struct commands *tree_filter_commands(struct tree_filter *f);
/* How many processes did not fit: they were not sampled. */
uint64_t tree_filter_missed(const struct tree_filter *f);
void tree_filter_free(struct tree_filter *f);

#endif
