/*
 * Memory that programs take from the kernel themselves, by stack, beside their heaps. What an
 * allocator maps is not in here, so nothing is counted twice.
 */
#include "capture/heap_internal.h"

struct mapped {
    struct heaps *heaps;
    struct heap_image *image;
    uint64_t live;
};

static void events_declare(struct heaps *h)
{
    static const char *const names[MAP_EVENTS] = {"heap:mapped",        "heap:mapped-live",
                                                  "heap:files",         "heap:files-live",
                                                  "heap:for-allocator", "heap:for-allocator-live"};
    for (size_t i = 0; !h->map_events && i < MAP_EVENTS; i++)
        h->map_event[i] = writer_event(h->session->writer, names[i], UNIT_BYTES, 0);
    h->map_events = true;
}

static void add_live(void *context, const struct heap_sums *s)
{
    struct mapped *m = context;
    m->live += s->kind == HEAP_MAPPED ? s->live : 0;
}

void heap_mapped_tick(struct heaps *h, struct heap_image *m, uint64_t now)
{
    struct mapped sum = {.heaps = h, .image = m};
    heap_view_each_mapped(m->view, add_live, &sum);
    if (sum.live || m->mapped.declared)
        heap_curve_add(h, &m->mapped, "mapped", m, now, (int64_t)sum.live);
}

static void write_cell(void *context, const struct heap_sums *s)
{
    const struct mapped *m = context;
    struct writer *w = m->heaps->session->writer;
    uint32_t stack = heap_image_stack(m->heaps, m->image, s->stack);
    uint32_t thread = heap_image_thread(m->image, s->thread);
    enum map_event all = s->kind == HEAP_FILES           ? EVENT_FILES
                         : s->kind == HEAP_FOR_ALLOCATOR ? EVENT_FOR_ALLOCATOR
                                                         : EVENT_MAPPED;
    events_declare(m->heaps);
    writer_sum(w, m->heaps->map_event[all], thread, stack, s->allocations, s->bytes);
    if (s->live)
        writer_sum(w, m->heaps->map_event[all + 1], thread, stack, s->live_blocks, s->live);
}

void heap_mapped_write(struct heaps *h, struct heap_image *m)
{
    struct mapped all = {.heaps = h, .image = m};
    heap_view_each_mapped(m->view, write_cell, &all);
}
