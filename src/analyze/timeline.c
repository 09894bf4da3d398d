/* Rows of time, folded as they get too many; see timeline.h. */
#include "analyze/timeline.h"

#include <stdlib.h>

#include "base/memory.h"

#define BUCKETS_LEAST 512 /* before stacks are cut */
#define LEAST_FIRST 21475 /* 1/200,000 of 2^32 */

void timeline_init(struct timeline *t, const struct profile *p, size_t limit)
{
    *t = (struct timeline){.profile = p, .limit = limit, .width = TIMELINE_WIDTH};
}

void timeline_release(struct timeline *t)
{
    free(t->nearest);
    map_release(&t->index);
    vector_release(&t->rows);
}

static void put(struct timeline *t, const struct timeline_row *row)
{
    struct timeline_row r = *row;
    if (t->nearest && r.stack < t->nearest_len && t->nearest[r.stack] != r.stack) {
        r.stack = t->nearest[r.stack];
        r.cut = true;
    }
    bool fresh;
    uint64_t a = (uint64_t)r.event << 32 | r.thread, b = (uint64_t)r.stack << 32 | r.bucket;
    uint64_t *at = map_put(&t->index, a << 1 | r.cut, b, t->rows.len, &fresh);
    if (fresh) {
        *vector_push(&t->rows) = r;
        return;
    }
    t->rows.data[*at].count += r.count;
    t->rows.data[*at].value += r.value;
}

/* All rows again, into buckets `halve` times as wide. */
static void refill(struct timeline *t, unsigned halve)
{
    struct timeline_row *old = t->rows.data;
    size_t len = t->rows.len;
    t->rows.data = NULL;
    t->rows.len = t->rows.cap = 0;
    map_release(&t->index);
    for (size_t i = 0; i < len; i++) {
        old[i].bucket >>= halve;
        put(t, &old[i]);
    }
    free(old);
}

/* What each stack and all above it carry, as a share of its event's total in 2^32-ths; the largest
 * over the events counts, so that a rare event keeps its stacks. */
static uint64_t *weights(const struct profile *p)
{
    uint64_t *weight = memory_array(p->stacks.len + 1, sizeof *weight);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        uint64_t all = p->events.data[c->event].value;
        if (all && c->value)
            weight[c->stack] += (uint64_t)((double)c->value / (double)all * 4294967296.0);
    }
    for (size_t i = p->stacks.len; i-- > 1;)
        if (p->stacks.data[i].parent < i)
            weight[p->stacks.data[i].parent] += weight[i];
    return weight;
}

static void cut_stacks(struct timeline *t)
{
    const struct profile *p = t->profile;
    uint64_t *weight = weights(p);
    t->least = t->least ? t->least * 4 : LEAST_FIRST;
    free(t->nearest);
    t->nearest_len = p->stacks.len;
    t->nearest = memory_array(p->stacks.len + 1, sizeof *t->nearest);
    for (uint32_t i = 1; i < p->stacks.len; i++) {
        uint32_t parent = p->stacks.data[i].parent;
        t->nearest[i] = weight[i] >= t->least || parent >= i ? i : t->nearest[parent];
    }
    free(weight);
}

static void fold(struct timeline *t)
{
    const struct profile *p = t->profile;
    uint64_t span = p->end > p->start ? p->end - p->start : 0;
    unsigned times = 0;
    while (times < 4 && span / (t->width << 1) >= BUCKETS_LEAST) {
        t->width <<= 1;
        times++;
    }
    if (!times)
        cut_stacks(t);
    refill(t, times);
}

int timeline_add(struct timeline *t, struct error *err)
{
    const struct profile *p = t->profile;
    struct samples_cursor c;
    struct profile_sample s;
    samples_begin(&c, &p->samples, SAMPLES_ALL, SAMPLES_ALL);
    while (samples_next(&c, &s)) {
        uint64_t at = s.time > p->start ? s.time - p->start : 0;
        while (at / t->width >= TIMELINE_BUCKETS) {
            t->width <<= 1;
            refill(t, 1);
        }
        put(t, &(struct timeline_row){.event = s.event,
                                      .thread = s.thread,
                                      .stack = s.stack,
                                      .bucket = (uint32_t)(at / t->width),
                                      .count = 1,
                                      .value = s.value});
        while (t->rows.len > t->limit && t->least < 1ull << 32)
            fold(t);
    }
    return samples_end(&c, err);
}

static int compare(const void *left, const void *right)
{
    const struct timeline_row *a = left, *b = right;
    if (a->event != b->event)
        return a->event < b->event ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    return a->cut - b->cut;
}

void timeline_sort(struct timeline *t)
{
    if (t->rows.len)
        qsort(t->rows.data, t->rows.len, sizeof *t->rows.data, compare);
    map_clear(&t->index);
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct timeline_row *r = &t->rows.data[i];
        uint64_t a = (uint64_t)r->event << 32 | r->thread;
        map_put(&t->index, a << 1 | r->cut, (uint64_t)r->stack << 32 | r->bucket, i, NULL);
    }
}
