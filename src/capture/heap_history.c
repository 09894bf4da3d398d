/*
 * How heaps changed: at times that a reader can ask for, what every stack allocated and freed since
 * the time before. Times get rarer as a run gets longer, and after many changes, so that the
 * recording grows with the logarithm of the run's length.
 */
#include "capture/heap_internal.h"

_Static_assert(DETAIL_SIZE_LAST == 1u << (HEAP_SIZES + 2), "the last bucket of a cell");

#define INTERVAL (50 * 1000000ull)
#define LONGER 512          /* an interval is at least that part of the run */
#define CHANGE_COST 100000u /* ns of waiting for each change that was put down */

struct change {
    struct heaps *heaps;
    struct heap_image *image;
    uint64_t now;
    size_t count;
    bool last;
};

static struct heap_seen *seen_of(struct heap_image *m, uint32_t cell)
{
    while (m->seen.len <= cell)
        *vector_push(&m->seen) = (struct heap_seen){0};
    return &m->seen.data[cell];
}

static void put(struct change *c, enum detail_kind kind, uint32_t thread, uint32_t stack,
                uint64_t count, uint64_t value)
{
    writer_detail(c->heaps->session->writer, &(struct writer_detail){.kind = kind,
                                                                     .thread = thread,
                                                                     .stack = stack,
                                                                     .key = c->now,
                                                                     .count = count,
                                                                     .value = value});
    c->count++;
}

/* The target writes on meanwhile, so a sum may seem to shrink: it is looked at again next time. */
static void on_cell(void *context, const struct heap_sums *s)
{
    struct change *c = context;
    struct heap_seen *seen = seen_of(c->image, s->cell);
    uint64_t freed = s->bytes - s->live, frees = s->allocations - s->live_blocks;
    bool grew = s->bytes > seen->bytes && s->allocations >= seen->allocations;
    bool shrank = freed > seen->freed && frees >= seen->frees;
    if (!grew && !shrank)
        return;
    if (!seen->stack) {
        bool whole = true;
        uint32_t stack = heap_stack_of(c->heaps, c->image, s->stack, &whole);
        if (!whole && !c->last)
            return; /* its module was loaded just now */
        seen->stack = stack + 1;
    }
    uint32_t thread = heap_image_thread(c->image, s->thread);
    if (grew) {
        put(c, DETAIL_GREW, thread, seen->stack - 1, s->allocations - seen->allocations,
            s->bytes - seen->bytes);
        seen->allocations = s->allocations;
        seen->bytes = s->bytes;
    }
    if (shrank) {
        put(c, DETAIL_SHRANK, thread, seen->stack - 1, frees - seen->frees, freed - seen->freed);
        seen->frees = frees;
        seen->freed = freed;
    }
}

size_t heap_history_add(struct heaps *h, struct heap_image *m, uint64_t now, bool last)
{
    struct change c = {.heaps = h, .image = m, .now = now, .last = last};
    heap_view_each(m->view, 0, on_cell, &c);
    return c.count;
}

void heap_history_tick(struct heaps *h, uint64_t now, uint64_t live)
{
    bool peak = live > h->highest + (h->highest >> 6);
    size_t count = 0;
    if (!h->first)
        h->first = now;
    if (now < h->next_history && !peak)
        return;
    for (size_t i = 0; i < h->images.len; i++)
        count += heap_history_add(h, h->images.data[i], now, false);
    h->highest = live > h->highest ? live : h->highest;
    uint64_t wait = (now - h->first) / LONGER, cost = count * (uint64_t)CHANGE_COST;
    wait = wait > INTERVAL ? wait : INTERVAL;
    h->next_history = now + (wait > cost ? wait : cost);
}

uint64_t heaps_mark(struct heaps *h, uint64_t time)
{
    /* The thread waits in its mark: what was seen before that is of before, by whatever clock. */
    time = time > h->last_tick ? time : h->last_tick + 1;
    h->marked = time;
    for (size_t i = 0; i < h->images.len; i++) {
        heap_image_learn(h, h->images.data[i]);
        heap_history_add(h, h->images.data[i], time, false);
    }
    return time;
}

static uint64_t least_of_class(uint32_t bucket)
{
    return bucket ? 8ull << bucket : 0;
}

/* In sampled mode a class counts its samples: each stands for as many as were likely passed over,
 * one of `size` bytes being taken with probability 1 - exp(-size / interval), nearly their ratio
 * where that is small. */
static uint64_t of_class(const struct heap_summary *mode, uint32_t level, uint32_t bucket,
                         uint64_t count)
{
    uint64_t size = least_of_class(bucket) * 3 / 2;
    size = size ? size : 8;
    if (mode->mode != HEAP_SAMPLED || size >= mode->interval << level)
        return count;
    return count * (mode->interval << level) / size;
}

struct detail {
    struct heaps *heaps;
    struct heap_image *image;
    struct heap_summary mode;
};

static void write_sizes(void *context, const struct heap_sums *s)
{
    struct detail *d = context;
    const struct heap_seen *seen = seen_of(d->image, s->cell);
    for (uint32_t i = 0; i < HEAP_SIZES; i++)
        if (s->sizes[i] && seen->stack)
            writer_detail(
                d->heaps->session->writer,
                &(struct writer_detail){.kind = DETAIL_SIZE,
                                        .thread = heap_image_thread(d->image, s->thread),
                                        .stack = seen->stack - 1,
                                        .key = least_of_class(i),
                                        .count = of_class(&d->mode, s->level, i, s->sizes[i])});
}

static void write_released(void *context, const struct heap_released *r)
{
    struct detail *d = context;
    writer_detail(
        d->heaps->session->writer,
        &(struct writer_detail){.kind = DETAIL_RELEASED,
                                .thread = heap_image_thread(d->image, r->thread),
                                .stack = heap_stack_of(d->heaps, d->image, r->stack, NULL),
                                .key = heap_image_thread(d->image, r->by),
                                .count = r->frees,
                                .value = r->freed});
}

void heap_details_write(struct heaps *h, struct heap_image *m)
{
    struct detail d = {.heaps = h, .image = m};
    heap_view_summary(m->view, &d.mode);
    heap_view_each(m->view, 0, write_sizes, &d);
    heap_view_each_released(m->view, write_released, &d);
}
