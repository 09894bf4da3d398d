/*
 * A flame chart's boxes from samples: thread by thread, in time order. The path
 * of open boxes is compared with the next sample's; what both share goes on, the rest ends.
 * A box is appended when it opens, so the order is that of a walk.
 */
#include "analyze/flame.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyze/tree_internal.h"
#include "base/memory.h"

struct open_box {
    uint32_t node; /* of the tree */
    uint32_t box;
};

struct chart {
    struct flame *f;
    const struct selection *s;
    VECTOR(struct open_box) open; /* below the lane, outermost first */
    VECTOR(uint32_t) path;        /* of the present sample, innermost first */
    uint32_t lane;                /* box */
    uint64_t least;               /* width of a box that is kept */
    uint64_t end;                 /* of the last sample's time */
    uint64_t period;              /* the longest between two samples of time */
    bool *waits;                  /* by event */
};

static uint32_t open_box(struct chart *c, uint32_t symbol, uint32_t depth, uint64_t start)
{
    struct flame *f = c->f;
    *vector_push(&f->boxes) = (struct flame_box){.symbol = symbol, .depth = depth, .start = start};
    return (uint32_t)f->boxes.len - 1;
}

/*
 * Ends what is open beyond `keep` boxes; sums go to the box below. What is too narrow goes
 * at once, so that memory follows what is kept: all that stood on it was narrower still
 * and is gone, so it is the last one there is.
 */
static void close_boxes(struct chart *c, size_t keep)
{
    struct flame *f = c->f;
    while (c->open.len > keep) {
        uint32_t at = c->open.data[--c->open.len].box;
        struct flame_box *box = &f->boxes.data[at];
        struct flame_box *under =
            &f->boxes.data[c->open.len ? c->open.data[c->open.len - 1].box : c->lane];
        box->width = c->end - box->start;
        box->total += box->self;
        box->total_count += box->self_count;
        under->total += box->total;
        under->total_count += box->total_count;
        if (box->width < c->least) {
            f->boxes.len = at;
            f->pruned++;
        } else if (box->depth > f->depth) {
            f->depth = box->depth;
        }
    }
}

/* The time a sample stands for, for values that are time; else the time since the last one. */
static uint64_t sample_start(const struct chart *c, const struct profile_sample *sample,
                             uint64_t time)
{
    uint64_t length = c->s->unit == UNIT_NANOSECONDS ? sample->value : time - c->end;
    uint64_t start = length < time ? time - length : 0;
    /* Late timers leave small gaps between samples of one run; they are no rest. */
    if (start < c->end || start - c->end <= length / 2)
        start = c->end;
    return start < time ? start : time;
}

/* From when to when it is drawn. A sample stands for the time before it; a wait has the time at
 * which it began, up to which the thread ran on. */
static uint64_t sample_times(struct chart *c, const struct profile_sample *sample, uint64_t time,
                             uint64_t *end)
{
    bool wait = c->waits[sample->event];
    *end = wait ? time + sample->value : time;
    if (*end <= c->end)
        *end = c->end + 1;
    if (!wait)
        return sample_start(c, sample, *end);
    if (time > c->end && time - c->end <= c->period && c->open.len)
        c->end = time;
    return time > c->end ? time : c->end;
}

static void chart_sample(struct chart *c, const struct profile_sample *sample, uint64_t origin)
{
    const struct tree *t = c->f->tree;
    uint32_t node = sample->stack ? tree_node_of(t, sample->event, sample->stack) : TREE_NONE;
    uint64_t time = sample->time > origin ? sample->time - origin : 0;
    uint64_t start = sample_times(c, sample, time, &time);
    if (start != c->end)
        close_boxes(c, 0);
    c->path.len = 0;
    for (; node != TREE_NONE && node; node = t->nodes.data[node].parent)
        *vector_push(&c->path) = node;
    size_t same = 0;
    while (same < c->open.len && same < c->path.len &&
           c->open.data[same].node == c->path.data[c->path.len - 1 - same])
        same++;
    close_boxes(c, same);
    while (same < c->path.len) {
        node = c->path.data[c->path.len - 1 - same++];
        const struct tree_node *n = &t->nodes.data[node];
        uint32_t box = open_box(c, n->symbol, (uint32_t)same, start);
        c->f->boxes.data[box].line = n->line;
        c->f->boxes.data[box].inlined = n->inlined;
        *vector_push(&c->open) = (struct open_box){.node = node, .box = box};
    }
    struct flame_box *leaf =
        &c->f->boxes.data[c->open.len ? c->open.data[c->open.len - 1].box : c->lane];
    leaf->self += sample->value;
    leaf->self_count++;
    c->end = time;
}

/* Of the thread's first and last chosen sample; false if there is none. */
static bool thread_times(const struct chart *chart, uint32_t thread, uint64_t *first,
                         uint64_t *last, struct error *err, int *rc)
{
    const struct selection *s = chart->s;
    struct samples_cursor c;
    struct profile_sample m;
    bool any = false;
    samples_begin(&c, &s->profile->samples, SAMPLES_ALL, thread);
    while (samples_next(&c, &m)) {
        if (!selection_has(s, m.event, m.thread, m.stack))
            continue;
        uint64_t end = m.time + (chart->waits[m.event] ? m.value : 0);
        if (!any)
            *first = m.time;
        *last = !any || end > *last ? end : *last;
        any = true;
    }
    *rc = samples_end(&c, err);
    return any && !*rc;
}

static void open_lane(struct chart *c, uint32_t thread)
{
    c->lane = open_box(c, tree_symbol_of_thread(c->f->tree, c->s->profile, thread), 0, 0);
}

static int chart_thread(struct chart *c, uint32_t thread, struct error *err)
{
    const struct profile *p = c->s->profile;
    struct samples_cursor cursor;
    struct profile_sample m;
    uint64_t first, last;
    int rc;
    if (!thread_times(c, thread, &first, &last, err, &rc))
        return rc;
    open_lane(c, thread);
    /* A count says nothing of the time before the first one. */
    c->end = c->s->unit != UNIT_NANOSECONDS && first > p->start ? first - p->start - 1 : 0;
    samples_begin(&cursor, &p->samples, SAMPLES_ALL, thread);
    while (samples_next(&cursor, &m))
        if (selection_has(c->s, m.event, m.thread, m.stack))
            chart_sample(c, &m, p->start);
    close_boxes(c, 0);
    struct flame_box *lane = &c->f->boxes.data[c->lane];
    lane->total += lane->self;
    lane->total_count += lane->self_count;
    /* Samples at one instant were told apart by a nanosecond each. */
    if (c->end > c->f->extent)
        c->f->extent = c->end;
    return samples_end(&cursor, err);
}

int flame_from_samples(struct flame *f, struct tree *t, const struct selection *s,
                       double min_percent, struct error *err)
{
    const struct profile *p = s->profile;
    struct chart c = {.f = f, .s = s, .waits = memory_array(p->events.len + 1, sizeof *c.waits)};
    int rc = 0;
    *f = (struct flame){.tree = t, .chart = true};
    for (uint32_t i = 0; i < p->events.len; i++) {
        const struct profile_event *e = &p->events.data[i];
        c.waits[i] = selection_event_waits(p, i);
        if (e->unit == UNIT_NANOSECONDS && e->period > c.period)
            c.period = e->period;
    }
    for (uint32_t i = 0; i < p->threads.len && !rc; i++) {
        uint64_t first, last = 0;
        if (thread_times(&c, i, &first, &last, err, &rc) && last > p->start &&
            last - p->start > f->extent)
            f->extent = last - p->start;
    }
    c.least = (uint64_t)((double)f->extent * min_percent / 100);
    for (uint32_t i = 0; i < p->threads.len && !rc; i++)
        rc = chart_thread(&c, i, err);
    for (size_t i = 0; i < f->boxes.len; i++)
        if (!f->boxes.data[i].depth)
            f->boxes.data[i].width = f->extent;
    vector_release(&c.open);
    vector_release(&c.path);
    free(c.waits);
    return rc;
}
