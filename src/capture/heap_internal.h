/* The heaps' state, shared by heap.c (life, curves, ends), heap_live.c (while they run) and
 * heap_history.c (how they changed). */
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

/* Of memory that programs map themselves; declared when the first one does. */
/* In pairs: in all, and live. */
enum map_event {
    EVENT_MAPPED,
    EVENT_MAPPED_LIVE,
    EVENT_FILES,
    EVENT_FILES_LIVE,
    EVENT_FOR_ALLOCATOR,
    EVENT_FOR_ALLOCATOR_LIVE,
    MAP_EVENTS
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

/* What the recording has been told of a cell: sums there are sums of what is told. */
struct heap_told {
    uint64_t allocations, bytes;
    uint64_t live_blocks, live;
    uint64_t temporary, temporary_bytes;
    uint32_t stack; /* in the recording */
    bool known;
};

/* The same for the history. */
struct heap_seen {
    uint64_t allocations, bytes, frees, freed;
    uint32_t stack; /* in the recording, + 1; 0: not yet known */
};

/* What is resident, by kind. */
struct heap_ledger {
    struct curve anonymous, file, shared, pss;
    uint64_t next_pss;
    uint64_t asked; /* for the proportional share: when, and what was resident then */
    int64_t asked_resident;
};

/* One program that a process runs. */
struct heap_image {
    pid_t pid;
    struct agents_process *agent; /* for its Python, and its threads */
    uint32_t process;             /* in the recording */
    uint32_t main;                /* its first thread */
    struct space *space;
    struct heap_view *view;
    VECTOR(struct heap_task) tasks;
    VECTOR(struct heap_told) told; /* by cell */
    VECTOR(struct heap_seen) seen; /* by cell */
    bool paused;
    struct curve live, rss, mapped;
    struct heap_ledger ledger;
};

/* What a stack of an ended process held at the tree's peak, if that was its last one. */
struct held {
    uint32_t thread, stack;
    uint64_t bytes;
};

struct heaps {
    struct session *session;
    uint32_t event[EVENTS];
    uint32_t map_event[MAP_EVENTS];
    bool map_events;                    /* are declared */
    VECTOR(struct heap_image *) images; /* alive, with a view */
    VECTOR(struct held) held;           /* at the peak `held_peak` */
    uint64_t held_peak;                 /* as the tree has it */
    uint64_t last_tick;
    unsigned snapshots;
    bool pause_new; /* of the tree, so of who comes later as well */
    uint32_t level; /* see heaps_set_level */
    uint64_t cost;  /* of processes that have ended */
    uint64_t first, next_history;
    uint64_t marked;  /* time of the latest mark */
    uint64_t highest; /* live bytes at a point of the history */
};

/* A stack of the segment in the recording. With `*whole` given, it says whether all of it lies in
 * modules that are known by now. */
uint32_t heap_stack_of(struct heaps *h, const struct heap_image *m, uint32_t stack, bool *whole);
uint32_t heap_image_stack(struct heaps *h, struct heap_image *m, uint32_t stack);
/* The thread in the recording; learns of new ones first. */
uint32_t heap_image_thread(const struct heap_image *m, uint32_t thread);
void heap_image_learn(struct heaps *h, struct heap_image *m);
/* Tells the recording how a cell has changed since it was told last; returns its stack. */
uint32_t heap_image_tell(struct heaps *h, struct heap_image *m, const struct heap_sums *s);

/* A point of a curve of the whole process. */
void heap_curve_add(struct heaps *h, struct curve *c, const char *name, const struct heap_image *m,
                    uint64_t time, int64_t value);

/* ---- heap_mapped.c */
void heap_mapped_tick(struct heaps *h, struct heap_image *m, uint64_t now);
void heap_mapped_write(struct heaps *h, struct heap_image *m); /* at the end of a process */

/* ---- heap_ledger.c */
void heap_ledger_tick(struct heaps *h, struct heap_image *m, uint64_t now);

/* ---- heap_history.c */
/* Puts down what every stack allocated and freed since the last time; at the end of a process also
 * what is left over. Returns how much that was. */
size_t heap_history_add(struct heaps *h, struct heap_image *m, uint64_t now, bool last);
/* Of all processes, if it is time. `live` is what they hold now. */
void heap_history_tick(struct heaps *h, uint64_t now, uint64_t live);
/* Sizes, and who freed what others had allocated. At the end of a process. */
void heap_details_write(struct heaps *h, struct heap_image *m);

#endif
