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

/* A report over the same threads and stacks with another event. */
struct heap_part {
    struct selection selection;
    struct tree tree;
    struct report r;
};

void heap_part_init(struct heap_part *part, const struct report *r, const char *event);
void heap_part_release(struct heap_part *part);

/* One line for the first screen of a recording that has other samples too, in the last section. */
void section_heap_line(struct view *v, const struct report *r);

#endif
