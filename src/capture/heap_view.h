/*
 * Reads one heap segment (wire/heap.h), which its process may be writing to, or may have filled
 * with anything at all: every number is copied once and checked, memory and time are bounded.
 */
#ifndef SONDE_HEAP_VIEW_H
#define SONDE_HEAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/heap.h"

struct heap_view;

struct heap_summary {
    enum heap_mode mode;
    uint64_t interval;
    uint64_t live;            /* bytes */
    uint64_t peak, peak_time; /* bytes; the agents' clock, 0 if unknown */
    /* Allocations: generated = recorded + lost. One that was under way when its process was killed
     * counts as lost. Of sampled mode these are the samples. */
    uint64_t generated, recorded, lost;
    uint64_t lost_by[HEAP_LOSSES], lost_bytes;
    uint64_t frees, unknown_frees;
    uint64_t mapped, mappings_lost; /* calls of mmap and the like that are in cells; that are not */
    uint64_t stackless;             /* recorded without a stack: there was no room */
    uint32_t threads, stacks, cells;
    uint64_t table_bytes; /* of live blocks */
    bool damaged;         /* the segment contradicts itself */
};

/* One thread and one stack. Counts and bytes are estimates in sampled mode. */
struct heap_sums {
    uint32_t cell, thread, stack; /* thread 0: not known which */
    enum heap_kind kind;
    uint32_t level; /* of sampled mode, see wire/heap.h */
    uint64_t allocations, bytes;
    uint64_t live_blocks, live;
    uint64_t peak, tree_peak; /* bytes held then */
    uint64_t temporary, temporary_bytes;
    uint64_t foreign_frees, foreign_freed;
    uint32_t sizes[HEAP_SIZES];
};

struct heap_who {
    pid_t tid;
    uint64_t start, end;
    bool ended;
    char name[17];
};

/* On `size` bytes at `base`, which must outlive the view. */
int heap_view_new(const void *base, size_t size, struct heap_view **out, struct error *err);
void heap_view_free(struct heap_view *v); /* NULL-safe */

void heap_view_summary(struct heap_view *v, struct heap_summary *out);
uint32_t heap_view_threads(struct heap_view *v); /* entries so far, 0 being special */
bool heap_view_thread(struct heap_view *v, uint32_t index, struct heap_who *out);

/* Calls for every cell of blocks that was used. `tree_epoch` is the tree's. */
void heap_view_each(struct heap_view *v, uint32_t tree_epoch,
                    void (*each)(void *context, const struct heap_sums *sums), void *context);

/* The same for cells of other kinds. */
void heap_view_each_mapped(struct heap_view *v,
                           void (*each)(void *context, const struct heap_sums *sums),
                           void *context);

/* What a thread freed of what another had allocated. */
struct heap_released {
    uint32_t by, thread, stack; /* who freed; who had allocated, and where */
    uint64_t frees, freed;
};

void heap_view_each_released(struct heap_view *v,
                             void (*each)(void *context, const struct heap_released *released),
                             void *context);

/* The addresses of a stack, innermost first, all of them return addresses but the one at
 * *interrupted (0: none). Returns how many, 0 for the stack of those that found no room. */
size_t heap_view_stack(struct heap_view *v, uint32_t stack, uint64_t address[HEAP_DEPTH],
                       size_t *interrupted, bool *complete);

/* The Python frames of a stack, innermost first, two words each as in wire/heap.h; how many frames.
 */
size_t heap_view_python(struct heap_view *v, uint32_t stack, uint64_t words[2 * HEAP_PYTHON_DEPTH],
                        bool *whole);

/* Tells the agent; the view's memory must be writable then. */
void heap_view_leave(struct heap_view *v); /* see HEAP_LEAVING */
void heap_view_pause(struct heap_view *v, bool pause);
void heap_view_set_level(struct heap_view *v, uint32_t level); /* see heap_header.level */

/* ns that the agent has spent on samples, in all threads so far. */
uint64_t heap_view_cost(struct heap_view *v);

int64_t heap_view_told(const struct heap_view *v); /* its share of heap_tree.total */
/* Whether it was in the sum that made the tree's `peak`; one that was killed always was. */
bool heap_view_in_peak(const struct heap_view *v, uint64_t peak);

#endif
