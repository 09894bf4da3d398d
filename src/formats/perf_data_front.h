/*
 * The fronts of long records. Of a sample with a long copy of a stack mostly only the beginning is
 * needed, and to look into a mapped file brings in all pages around, 16 at a time. So the front is
 * read by itself, together with the end of the record before, which says how much of that
 * one's stack is real. Fronts are used again as soon as their samples were counted.
 */
#ifndef SONDE_PERF_DATA_FRONT_H
#define SONDE_PERF_DATA_FRONT_H

#include "base/vector.h"
#include "formats/source.h"

#define PERF_FRONT ((size_t)4096)
#define PERF_FRONT_BEFORE ((size_t)64)

struct perf_front {
    struct perf_front *next; /* among those that are free */
    uint64_t offset;         /* of the record in the file */
    uint32_t whole_len;      /* of the record */
    bool ended;              /* its end was read too */
    uint8_t end[PERF_FRONT_BEFORE];
    uint8_t bytes[PERF_FRONT_BEFORE + PERF_FRONT]; /* from the end of the record before on */
};

struct perf_fronts {
    struct perf_front *free;
    VECTOR(struct perf_front *) slabs;
};

/* The bytes around `offset` (PERF_FRONT_BEFORE at least) of a source that source_at can read; NULL
 * if they are not there, or if as many are in use as may be. */
struct perf_front *perf_front_read(struct perf_fronts *f, struct source *in, uint64_t offset);
void perf_front_free(struct perf_fronts *f, struct perf_front *front); /* NULL-safe */
void perf_fronts_release(struct perf_fronts *f);

#endif
