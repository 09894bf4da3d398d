/* Heaps while their processes run: what changed, who holds what, on and off; see heap.h. */
#include <stdio.h>

#include "base/clock.h"
#include "capture/heap_internal.h"

static struct heap_told *told_of(struct heap_image *m, uint32_t cell)
{
    vector_reserve(&m->told, (size_t)cell + 1);
    while (m->told.len <= cell)
        m->told.data[m->told.len++] = (struct heap_told){0};
    return &m->told.data[cell];
}

/* Differences may be negative: sums are taken modulo 2^64, so they come out right. */
static void put(struct heaps *h, enum heap_event event, uint32_t thread, uint32_t stack,
                uint64_t count, uint64_t value)
{
    if (count || value)
        writer_sum(h->session->writer, h->event[event], thread, stack, count, value);
}

uint32_t heap_image_tell(struct heaps *h, struct heap_image *m, const struct heap_sums *s)
{
    struct heap_told *t = told_of(m, s->cell), was = *t;
    uint32_t thread = heap_image_thread(m, s->thread);
    if (!was.known)
        t->stack = heap_image_stack(h, m, s->stack);
    t->known = true;
    put(h, EVENT_ALLOCATED, thread, t->stack, s->allocations - was.allocations,
        s->bytes - was.bytes);
    put(h, EVENT_LIVE, thread, t->stack, s->live_blocks - was.live_blocks, s->live - was.live);
    put(h, EVENT_TEMPORARY, thread, t->stack, s->temporary - was.temporary,
        s->temporary_bytes - was.temporary_bytes);
    t->allocations = s->allocations;
    t->bytes = s->bytes;
    t->live_blocks = s->live_blocks;
    t->live = s->live;
    t->temporary = s->temporary;
    t->temporary_bytes = s->temporary_bytes;
    return t->stack;
}

void heaps_set_level(struct heaps *h, uint32_t level)
{
    h->level = level;
    for (size_t i = 0; i < h->images.len; i++)
        heap_view_set_level(h->images.data[i]->view, level);
}

uint64_t heaps_cost(const struct heaps *h)
{
    uint64_t sum = h->cost;
    for (size_t i = 0; i < h->images.len; i++)
        sum += heap_view_cost(h->images.data[i]->view);
    return sum;
}

struct telling {
    struct heaps *heaps;
    struct heap_image *image;
    uint32_t event;
    uint64_t bytes;
};

static void tell_cell(void *context, const struct heap_sums *s)
{
    struct telling *t = context;
    heap_image_tell(t->heaps, t->image, s);
}

void heaps_tell(struct heaps *h)
{
    for (size_t i = 0; i < h->images.len; i++) {
        struct telling t = {.heaps = h, .image = h->images.data[i]};
        heap_image_learn(h, t.image);
        heap_view_each(t.image->view, 0, tell_cell, &t);
    }
}

static void snapshot_cell(void *context, const struct heap_sums *s)
{
    struct telling *t = context;
    if (!s->live && !s->live_blocks)
        return;
    uint32_t stack = heap_image_tell(t->heaps, t->image, s);
    writer_sum(t->heaps->session->writer, t->event, heap_image_thread(t->image, s->thread), stack,
               s->live_blocks, s->live);
    t->bytes += s->live;
}

size_t heaps_running(const struct heaps *h, pid_t pid)
{
    size_t found = 0;
    for (size_t i = 0; h && i < h->images.len; i++)
        found += !pid || h->images.data[i]->pid == pid;
    return found;
}

size_t heaps_snapshot(struct heaps *h, pid_t pid, char name[32], uint64_t *bytes)
{
    size_t found = heaps_running(h, pid);
    *bytes = 0;
    if (!found)
        return 0;
    snprintf(name, 32, "heap:snapshot-%u", ++h->snapshots);
    uint32_t event = writer_event(h->session->writer, name, UNIT_BYTES, 0);
    for (size_t i = 0; i < h->images.len; i++) {
        struct telling t = {.heaps = h, .image = h->images.data[i], .event = event};
        if (pid && t.image->pid != pid)
            continue;
        heap_image_learn(h, t.image);
        heap_view_each(t.image->view, 0, snapshot_cell, &t);
        *bytes += t.bytes;
    }
    return found;
}

size_t heaps_pause(struct heaps *h, pid_t pid, bool pause)
{
    size_t found = 0;
    if (!pid)
        h->pause_new = pause;
    for (size_t i = 0; i < h->images.len; i++) {
        struct heap_image *m = h->images.data[i];
        if (pid && m->pid != pid)
            continue;
        heap_view_pause(m->view, m->paused = pause);
        found++;
    }
    return found;
}

void heaps_leave(struct heaps *h)
{
    for (size_t i = 0; i < h->images.len; i++)
        heap_view_leave(h->images.data[i]->view);
}
