/*
 * The fronts of long records. Of a sample with a long copy of a stack mostly only the beginning is
 * needed, and to look into a mapped file brings in all pages around, 16 at a time. So the front is
 * read by itself, together with the end of the record before, which says how much of that
 * one's stack is real. A thread of its own does so ahead of the reader, where there is a CPU for
 * it: these reads wait for memory more than for anything else. Fronts are used again as soon as
 * their samples were counted.
 */
#ifndef SONDE_PERF_DATA_FRONT_H
#define SONDE_PERF_DATA_FRONT_H

#include <pthread.h>

#include "base/vector.h"
#include "formats/source.h"

#define PERF_FRONT ((size_t)4096)
#define PERF_FRONT_BEFORE ((size_t)64)

struct perf_front {
    struct perf_front *next;
    uint64_t offset;    /* of the record in the file */
    uint32_t whole_len; /* of the record */
    bool ended;         /* its end was read too */
    uint8_t end[PERF_FRONT_BEFORE];
    uint8_t bytes[PERF_FRONT_BEFORE + PERF_FRONT]; /* from the end of the record before on */
};

/* A list that is added to at its end. */
struct perf_front_list {
    struct perf_front *first, **end;
    size_t len;
};

struct perf_fronts {
    struct source *in;
    struct perf_front_list mine; /* the reader's, in the order of the file */
    struct perf_front *freed;    /* by the reader, not told to others yet */
    bool started, threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more, room;
    struct perf_front_list ready;
    struct perf_front *free;
    VECTOR(struct perf_front *) slabs;
    uint64_t next, limit; /* where to read on, and up to where */
    bool filling;         /* somebody reads */
    bool over, stop;
};

/* Is that the header of a record whose front is worth a read of its own? */
bool perf_front_is_long(const uint8_t *header);
/* Begins to read ahead from the record at `offset`, of a source that source_at can read; the
 * records end at `limit`. */
void perf_fronts_start(struct perf_fronts *f, struct source *in, uint64_t offset, uint64_t limit);
/* The front of the record at `offset`, no less than that of the call before; NULL if it has none,
 * or if as many are in use as may be. To be freed; `peek` leaves it where it is. */
struct perf_front *perf_front_take(struct perf_fronts *f, uint64_t offset);
const struct perf_front *perf_front_peek(struct perf_fronts *f, uint64_t offset);
void perf_front_free(struct perf_fronts *f, struct perf_front *front); /* NULL-safe */
void perf_fronts_release(struct perf_fronts *f);

#endif
