/*
 * Records in the order of their times. perf writes what it finds in one CPU's buffer after the
 * other, round by round; all that is older than the newest record of the round before
 * can be handed on when a round ends. Without rounds, the older half goes when too much waits.
 */
#ifndef SONDE_PERF_DATA_QUEUE_H
#define SONDE_PERF_DATA_QUEUE_H

#include "formats/perf_data_internal.h"

#define PERF_QUEUE_MAX ((size_t)64 << 20)    /* bytes that wait in copies */
#define PERF_QUEUE_RECORDS ((size_t)1 << 18) /* records that wait */

struct perf_waiting {
    uint64_t time;
    const uint8_t *data; /* bytes that stay; or NULL: */
    size_t at;           /* in the queue's own */
    uint32_t len, number;
    struct perf_front *front; /* as in perf_bytes */
};

struct perf_queue {
    VECTOR(struct perf_waiting) waiting;
    VECTOR(uint8_t) bytes, kept;
    uint64_t newest, safe; /* times: of all so far, of all before this round */
    uint64_t out_of_order; /* records that came too late for their place */
    uint64_t handed_on;    /* time of the last one */
};

/* Takes a copy of what does not stay; 0 or what perf_bytes_use failed with. A record without time
 * is used at once. */
int perf_queue_add(struct perf_queue *q, struct perf_data *d, struct perf_bytes record,
                   struct error *err);
int perf_queue_round(struct perf_queue *q, struct perf_data *d, struct error *err);
int perf_queue_finish(struct perf_queue *q, struct perf_data *d, struct error *err);
void perf_queue_release(struct perf_queue *q);

#endif
