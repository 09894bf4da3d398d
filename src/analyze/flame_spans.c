/*
 * A timeline's boxes from spans: calls that were traced and what the program marked, thread by
 * thread. Spans of a thread stand in the order of their beginnings, which is that of a walk.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analyze/flame.h"
#include "analyze/tree_internal.h"
#include "base/memory.h"

struct timeline {
    struct flame *f;
    const struct selection *s;
    uint32_t *symbol;      /* by function of the profile */
    VECTOR(uint32_t) open; /* boxes of the thread that is drawn */
    uint64_t least, origin;
};

/* x begins with the first span: what came before was not traced. */
static uint64_t since(uint64_t origin, uint64_t time)
{
    return time > origin ? time - origin : 0;
}

static uint32_t symbol_of(struct timeline *c, uint32_t frame)
{
    const struct profile *p = c->s->profile;
    const struct profile_frame *f = &p->frames.data[frame];
    if (!f->location_count)
        return tree_symbol_add(c->f->tree, TREE_CODE, profile_module_name(p, f->module));
    uint32_t function = p->locations.data[f->first_location + f->location_count - 1].function;
    if (c->symbol[function] == TREE_NONE)
        c->symbol[function] = tree_symbol_add(c->f->tree, TREE_CODE,
                                              profile_text(p, p->functions.data[function].name));
    return c->symbol[function];
}

/* What is open at `start` and does not last beyond it is no caller of what begins there. */
static void put_box(struct timeline *c, const struct profile_span *span, uint64_t start,
                    uint64_t width)
{
    struct flame *f = c->f;
    while (c->open.len) {
        const struct flame_box *top = &f->boxes.data[c->open.data[c->open.len - 1]];
        if (top->start + top->width > start || (!top->width && top->start == start))
            break;
        c->open.len--;
    }
    if (c->open.len) {
        struct flame_box *caller = &f->boxes.data[c->open.data[c->open.len - 1]];
        caller->self -= caller->self > width ? width : caller->self;
    }
    const struct profile_frame *frame = &c->s->profile->frames.data[span->frame];
    uint32_t line =
        frame->location_count ? c->s->profile->locations.data[frame->first_location].line : 0;
    *vector_push(&f->boxes) = (struct flame_box){.symbol = symbol_of(c, span->frame),
                                                 .depth = span->depth + 1,
                                                 .line = line,
                                                 .start = start,
                                                 .width = width,
                                                 .self = width,
                                                 .total = width,
                                                 .total_count = 1,
                                                 .self_count = 1};
    if (span->depth + 1 > f->depth)
        f->depth = span->depth + 1;
    *vector_push(&c->open) = (uint32_t)f->boxes.len - 1;
}

static uint32_t open_lane(struct timeline *c, uint32_t thread)
{
    uint32_t symbol = tree_symbol_of_thread(c->f->tree, c->s->profile, thread);
    *vector_push(&c->f->boxes) = (struct flame_box){.symbol = symbol, .width = c->f->extent};
    c->open.len = 0;
    return (uint32_t)c->f->boxes.len - 1;
}

struct order {
    uint32_t thread, index;
};

static int compare(const void *left, const void *right)
{
    const struct order *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static void draw(struct timeline *c, const struct order *order, size_t count)
{
    const struct profile *p = c->s->profile;
    uint32_t lane = 0;
    for (size_t i = 0; i < count; i++) {
        const struct profile_span *s = &p->spans.data[order[i].index];
        uint64_t start = since(c->origin, s->time), width = since(c->origin, s->end) - start;
        if (!i || order[i].thread != order[i - 1].thread)
            lane = open_lane(c, order[i].thread);
        if (width < c->least && !s->mark) {
            c->f->pruned++;
            continue;
        }
        put_box(c, s, start, width);
        if (!s->depth)
            c->f->boxes.data[lane].total += width;
        c->f->boxes.data[lane].total_count++;
    }
}

void flame_from_spans(struct flame *f, struct tree *t, const struct selection *s,
                      double min_percent)
{
    const struct profile *p = s->profile;
    struct order *order = memory_array(p->spans.len + 1, sizeof *order);
    uint64_t origin = UINT64_MAX, last = 0;
    size_t count = 0;
    *f = (struct flame){.tree = t, .chart = true};
    for (size_t i = 0; i < p->spans.len; i++) {
        if (!s->thread[p->spans.data[i].thread])
            continue;
        order[count++] = (struct order){p->spans.data[i].thread, (uint32_t)i};
        origin = p->spans.data[i].time < origin ? p->spans.data[i].time : origin;
        last = p->spans.data[i].end > last ? p->spans.data[i].end : last;
    }
    f->extent = since(origin, last);
    qsort(order, count, sizeof *order, compare);
    struct timeline c = {.f = f,
                         .s = s,
                         .origin = origin,
                         .symbol = tree_array_of_none(p->functions.len),
                         .least = (uint64_t)((double)f->extent * min_percent / 100)};
    for (uint32_t i = 0; i < t->symbols.len; i++)
        if (t->symbols.data[i].function < p->functions.len)
            c.symbol[t->symbols.data[i].function] = i;
    draw(&c, order, count);
    vector_release(&c.open);
    free(c.symbol);
    free(order);
}
