/* Reading a perf ring; see ring.h. */
#include "capture/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

#define RECORD_MAX 65536

int ring_open(struct ring *r, int fd, size_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *base = mmap(NULL, page * (pages + 1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    *r = (struct ring){.page = base, .data = (uint8_t *)base + page, .size = page * pages};
    r->wrapped = memory_alloc(RECORD_MAX);
    return 0;
}

void ring_refresh(struct ring *r)
{
    if (r->page) /* there may be nothing to read from: no samples, or no task that could be had */
        r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/* The record at *from; what is not what a kernel writes moves it to the head, since nothing after
 * it can be trusted. */
static const struct perf_event_header *record_at(struct ring *r, uint64_t *from)
{
    struct perf_event_header h;
    if (r->head - *from < sizeof h)
        return NULL;
    uint64_t at = *from & (r->size - 1);
    /* Records are multiples of 8 and so is the buffer: a header of 8 bytes never wraps. */
    memcpy(&h, r->data + at, sizeof h);
    if (h.size < sizeof h || h.size > r->head - *from) {
        *from = r->head;
        return NULL;
    }
    if (at + h.size <= r->size)
        return (const struct perf_event_header *)(r->data + at);
    size_t first = r->size - at;
    memcpy(r->wrapped, r->data + at, first);
    memcpy(r->wrapped + first, r->data, h.size - first);
    return (const struct perf_event_header *)r->wrapped;
}

const struct perf_event_header *ring_peek(struct ring *r)
{
    return record_at(r, &r->tail);
}

const struct perf_event_header *ring_scan(struct ring *r)
{
    if (r->scanned < r->tail)
        r->scanned = r->tail;
    const struct perf_event_header *h = record_at(r, &r->scanned);
    if (h)
        r->scanned += h->size;
    return h;
}

void ring_take(struct ring *r)
{
    struct perf_event_header h;
    memcpy(&h, r->data + (r->tail & (r->size - 1)), sizeof h);
    r->tail += h.size;
    __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

void ring_close(struct ring *r)
{
    if (!r->page)
        return;
    munmap(r->page, r->size + (size_t)sysconf(_SC_PAGESIZE));
    free(r->wrapped);
    *r = (struct ring){0};
}
