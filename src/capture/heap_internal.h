/* What the files of the heaps share: heap.c (life, sums, curves) and heap_history.c. */
#ifndef SONDE_CAPTURE_HEAP_INTERNAL_H
#define SONDE_CAPTURE_HEAP_INTERNAL_H

#include "base/vector.h"
#include "capture/heap.h"
#include "capture/heap_view.h"
#include "capture/session_internal.h"

enum heap_event {
    EVENT_ALLOCATED,
    EVENT_LIVE,
    EVENT_PEAK,
    EVENT_TREE_PEAK,
    EVENT_TEMPORARY,
    EVENTS
};

struct curve {
    uint32_t series;
    bool declared;
    int64_t last;
};

/* A thread as the agent numbers it. */
struct heap_task {
    uint32_t id; /* in the recording, or WRITER_NONE */
    struct curve live;
    int64_t now;
};

/* What the recording has of a cell so far. */
struct heap_seen {
    uint64_t allocations, bytes, frees, freed;
    uint32_t stack; /* in the recording, + 1; 0: not yet known */
};

/* One program that a process runs. */
struct heap_image {
    pid_t pid;
    uint32_t process; /* in the recording */
    uint32_t main;    /* its first thread */
    struct space *space;
    struct heap_view *view;
    VECTOR(struct heap_task) tasks;
    struct curve live, rss;
    VECTOR(struct heap_seen) seen; /* by cell */
};

/* What a stack of an ended process held at the tree's peak, if that was its last one. */
struct held {
    uint32_t thread, stack;
    uint64_t bytes;
};

struct heaps {
    struct session *session;
    uint32_t event[EVENTS];
    VECTOR(struct heap_image *) images; /* alive, with a view */
    VECTOR(struct held) held;           /* at the peak `held_peak` */
    uint64_t held_peak;                 /* as the tree has it */
    uint64_t last_tick;
    uint64_t first, next_history;
    uint64_t highest; /* live bytes at a point of the history */
};

/* A stack of the segment in the recording. With `*whole` given, it says whether all of it lies in
 * modules that are known by now. */
uint32_t heap_stack_of(struct heaps *h, const struct heap_image *m, uint32_t stack, bool *whole);
/* A thread of the segment in the recording. */
uint32_t heap_thread_of(const struct heap_image *m, uint32_t thread);

/* ---- heap_history.c */
/* Puts down what every stack allocated and freed since the last time; at the end of a process also
 * what is left over. Returns how much that was. */
size_t heap_history_add(struct heaps *h, struct heap_image *m, uint64_t now, bool last);
/* Of all processes, if it is time. `live` is what they hold now. */
void heap_history_tick(struct heaps *h, uint64_t now, uint64_t live);
/* Sizes, and who freed what others had allocated. At the end of a process. */
void heap_details_write(struct heaps *h, struct heap_image *m);

#endif
