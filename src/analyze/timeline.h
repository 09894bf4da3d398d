/*
 * Sums over time in a bounded number of rows, however long a recording is: a row is what one
 * thread did on one stack in one bucket of time. When the rows are too many, first the buckets
 * get wider, then stacks that carry little are counted at their nearest ancestor that carries more
 * (`cut`). Grows with a profile that is still being fed.
 */
#ifndef SONDE_TIMELINE_H
#define SONDE_TIMELINE_H

#include "base/map.h"
#include "profile/profile.h"

#define TIMELINE_ROWS 400000
#define TIMELINE_BUCKETS 65536
#define TIMELINE_WIDTH 250000ull /* ns, at first */

struct timeline_row {
    uint32_t event, thread, bucket, stack;
    bool cut; /* somewhere under that stack */
    uint64_t count, value;
};

struct timeline {
    const struct profile *profile; /* must outlive this */
    size_t limit;                  /* of rows */
    uint64_t width;                /* ns of a bucket */
    uint64_t least;                /* stacks below this share of a 2^32-th are cut */
    uint32_t *nearest;             /* stack -> that or the ancestor that stands for it; NULL: all */
    size_t nearest_len;
    struct map index; /* packed row -> row + 1 */
    VECTOR(struct timeline_row) rows;
};

void timeline_init(struct timeline *t, const struct profile *p, size_t limit);
void timeline_release(struct timeline *t);
/* Counts profile.samples. FAULT_SYSTEM if not all of them could be read back. */
int timeline_add(struct timeline *t, struct error *err);
/* By event, thread, bucket and stack. Rows lose their numbers. */
void timeline_sort(struct timeline *t);

#endif
