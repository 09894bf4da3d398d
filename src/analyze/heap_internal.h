/* What the views of the heap share. */
#ifndef SONDE_HEAP_INTERNAL_H
#define SONDE_HEAP_INTERNAL_H

#include "analyze/heap.h"
#include "analyze/report_internal.h"

/* One process: its own peak, and what its selected stacks did. */
struct heap_process {
    bool known, chosen; /* has a heap; has a thread in the selection */
    uint64_t peak, peak_time;
    uint64_t programs; /* that had a heap, one after the other */
    uint64_t left;     /* live when one of them was replaced by the next */
    uint64_t last;     /* live at the end of the last one */
    uint64_t allocated, allocations;
    uint64_t temporary, temporary_count;
    uint64_t live, live_blocks;
};

struct heap_sums {
    struct heap_process *by_process;
    struct heap_process all; /* chosen ones; peak is the sum of their peaks */
    uint64_t processes;      /* known and chosen */
    uint64_t tree_peak, tree_peak_time;
};

void heap_sums_init(struct heap_sums *h, const struct selection *s);
void heap_sums_release(struct heap_sums *h);

/* Since the recording's start. */
uint64_t heap_time(const struct profile *p, uint64_t time);

/* Did it end by itself, so that what is live was forgotten? */
bool heap_ended_in_order(const struct profile_process *q);

/* A table of the stacks of r->tree by what they cost themselves, innermost function first. */
void section_stacks(struct view *v, const struct report *r, const char *id, const char *title,
                    size_t limit);

/* "parse ← load ← main", at most so many of it; 0: all. */
void heap_stack_text(const struct tree *t, uint32_t node, unsigned limit, struct text *out);
/* The same, as short as people get to see it. */
struct view_value heap_stack_value(struct view_section *s, const struct tree *t, uint32_t node);

/* What a thread did on a stack up to a time, since the one before. */
struct heap_step {
    uint64_t time;
    uint64_t grew, allocations, shrank, frees;
    uint64_t live; /* bytes after it */
};

struct heap_history {
    uint32_t thread, stack;
    struct heap_step *steps; /* in order of time; at least one */
    size_t count;
};

/* heap_hold, as an event of that name. */
void heap_hold_as(struct profile *p, const char *event, uint64_t from, uint64_t to);
/* Calls for every thread and stack that has a history. */
void heap_histories(const struct profile *p,
                    void (*each)(void *context, const struct heap_history *history), void *context);

/* What was freed before the next point of the history, at least. */
struct heap_short {
    uint64_t bytes, allocations;
};

void heap_history_short(const struct heap_history *h, struct heap_short *sum);
struct heap_short heap_short_lived(const struct selection *s);

/* A report over the same threads and stacks with another event. */
struct heap_part {
    struct selection selection;
    struct tree tree;
    struct report r;
};

void heap_part_init(struct heap_part *part, const struct report *r, const char *event);
void heap_part_release(struct heap_part *part);

/* The highest point of a curve that has any. */
const struct profile_point *heap_highest(const struct profile_series *s);

/* Resident memory by kind, of each process when it had most. */
void section_ledger(struct view *v, const struct report *r, const struct heap_sums *h,
                    size_t limit);

/* One line for the first screen of a recording that has other samples too, in the last section. */
void section_heap_line(struct view *v, const struct report *r);

#endif
