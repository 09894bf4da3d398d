/*
 * A heap segment that its process filled with anything: read to the end, within its bounds. The
 * bytes are the header, then cells, then stacks and frames, then threads.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/heap_view.h"

#define MEMORY HEAP_MEMORY_MIN

struct reading {
    struct heap_view *view;
    uint64_t sum;
};

static void read_cell(void *context, const struct heap_sums *s)
{
    struct reading *r = context;
    uint64_t address[HEAP_DEPTH];
    size_t interrupted;
    bool complete;
    size_t count = heap_view_stack(r->view, s->stack, address, &interrupted, &complete);
    for (size_t i = 0; i < count; i++)
        r->sum += address[i];
    r->sum += interrupted + complete + s->live + s->peak;
}

/* The next part of the input, at most `most` bytes of it, to `to`. */
static void take(uint8_t *to, size_t most, const uint8_t **data, size_t *size)
{
    size_t n = *size < most ? *size : most;
    memcpy(to, *data, n);
    *data += n;
    *size -= n;
}

static uint8_t *segment(const struct heap_layout *l)
{
    static uint8_t *base;
    if (base)
        madvise(base, l->size, MADV_DONTNEED);
    else
        base = mmap(NULL, l->size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heap_layout l;
    struct error err = {0};
    struct reading r = {0};
    struct heap_summary summary;
    struct heap_who who;
    if (!heap_layout(MEMORY, &l))
        return 0;
    uint8_t *base = segment(&l);
    if (!base)
        return 0;
    take(base, 512, &data, &size);
    struct heap_header *h = (struct heap_header *)base;
    h->magic = HEAP_MAGIC;
    h->version = HEAP_VERSION;
    h->header_size = sizeof *h;
    h->memory = MEMORY;
    h->size = l.size;
    h->mode = HEAP_EXACT + (h->mode & 1);
    take(base + l.cells, 8 * sizeof(struct heap_cell), &data, &size);
    take(base + l.stacks, 8 * sizeof(struct heap_stack), &data, &size);
    take(base + l.threads, 4 * sizeof(struct heap_slot), &data, &size);
    if (heap_view_new(base, l.size, &r.view, &err) != 0)
        return 0;
    heap_view_summary(r.view, &summary);
    heap_view_each(r.view, h->epoch, read_cell, &r);
    for (uint32_t i = 0; i < 8; i++)
        if (heap_view_thread(r.view, i, &who))
            r.sum += strlen(who.name);
    heap_view_free(r.view);
    if (summary.generated != summary.recorded + summary.lost)
        __builtin_trap();
    return 0;
}
