/* Records in the order of their times; see perf_data_queue.h. */
#include "formats/perf_data_queue.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    const struct perf_waiting *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Moves what still waits to the front. */
static void keep_rest(struct perf_queue *q, size_t used)
{
    q->kept.len = 0;
    size_t n = 0;
    for (size_t i = used; i < q->waiting.len; i++) {
        struct perf_waiting w = q->waiting.data[i];
        if (!w.data) {
            vector_reserve(&q->kept, q->kept.len + w.len);
            memcpy(q->kept.data + q->kept.len, q->bytes.data + w.at, w.len);
            w.at = q->kept.len;
            q->kept.len += w.len;
        }
        w.number = (uint32_t)n;
        q->waiting.data[n++] = w;
    }
    q->waiting.len = n;
    uint8_t *data = q->bytes.data;
    size_t cap = q->bytes.cap;
    q->bytes.data = q->kept.data;
    q->bytes.len = q->kept.len;
    q->bytes.cap = q->kept.cap;
    q->kept.data = data;
    q->kept.cap = cap;
}

/* Hands on all up to that time, or the older half. */
static int hand_on(struct perf_queue *q, struct perf_data *d, uint64_t until, bool half,
                   struct error *err)
{
    int rc = 0;
    size_t i = 0;
    if (!q->waiting.len)
        return 0;
    qsort(q->waiting.data, q->waiting.len, sizeof *q->waiting.data, compare);
    for (; i < q->waiting.len && !rc; i++) {
        const struct perf_waiting *w = &q->waiting.data[i];
        if (half ? i > q->waiting.len / 2 : w->time > until)
            break;
        q->out_of_order += w->time < q->handed_on;
        q->handed_on = w->time > q->handed_on ? w->time : q->handed_on;
        struct perf_bytes r = {w->data ? w->data : q->bytes.data + w->at, w->len, w->data != NULL,
                               w->front};
        rc = perf_bytes_use(d, r, err);
    }
    if (!rc && q->bytes.len)
        rc = perf_work_flush(d, err);
    keep_rest(q, i);
    return rc;
}

int perf_queue_add(struct perf_queue *q, struct perf_data *d, struct perf_bytes record,
                   struct error *err)
{
    uint64_t time = perf_bytes_time(d, record);
    int rc = 0;
    if (!time || time == UINT64_MAX) {
        rc = perf_bytes_use(d, record, err);
        return rc || record.stays ? rc : perf_work_flush(d, err);
    }
    size_t copied = record.stays ? 0 : record.len;
    if (q->bytes.len + copied > PERF_QUEUE_MAX || q->waiting.len >= PERF_QUEUE_RECORDS)
        rc = hand_on(q, d, 0, true, err);
    *vector_push(&q->waiting) = (struct perf_waiting){.time = time,
                                                      .data = record.stays ? record.data : NULL,
                                                      .at = q->bytes.len,
                                                      .len = (uint32_t)record.len,
                                                      .number = (uint32_t)q->waiting.len,
                                                      .front = record.front};
    if (copied) {
        vector_reserve(&q->bytes, q->bytes.len + copied);
        memcpy(q->bytes.data + q->bytes.len, record.data, copied);
        q->bytes.len += copied;
    }
    q->newest = time > q->newest ? time : q->newest;
    return rc;
}

int perf_queue_round(struct perf_queue *q, struct perf_data *d, struct error *err)
{
    int rc = hand_on(q, d, q->safe, false, err);
    q->safe = q->newest;
    return rc;
}

int perf_queue_finish(struct perf_queue *q, struct perf_data *d, struct error *err)
{
    int rc = hand_on(q, d, UINT64_MAX, false, err);
    return rc ? rc : perf_work_flush(d, err);
}

void perf_queue_release(struct perf_queue *q)
{
    vector_release(&q->waiting);
    vector_release(&q->bytes);
    vector_release(&q->kept);
}
