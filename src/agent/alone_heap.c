/* The heap's cells as gperftools' text; see alone.h. */
#include <sys/syscall.h>

#include "agent/alone.h"
#include "agent/arch.h"

bool alone_heap_on;

static uint64_t allocated, dumped_at, highest;
static uint32_t busy, number;

struct sums {
    uint64_t blocks, live, allocations, bytes;
};

static void add(struct sums *s, const struct heap_cell *c)
{
    uint64_t frees = c->frees + __atomic_load_n(&c->foreign_frees, __ATOMIC_RELAXED);
    s->allocations += c->allocations;
    s->bytes += c->bytes;
    s->blocks += c->allocations > frees ? c->allocations - frees : 0;
    s->live += heap_live(c);
}

static void put_sums(struct alone_file *f, const struct sums *s)
{
    alone_number(f, s->blocks, 6);
    alone_text(f, ": ");
    alone_number(f, s->live, 8);
    alone_text(f, " [");
    alone_number(f, s->allocations, 6);
    alone_text(f, ": ");
    alone_number(f, s->bytes, 8);
    alone_text(f, "] @");
}

static void put_cell(struct alone_file *f, const struct heap_cell *c)
{
    const struct heap_layout *l = &heap_process->layout;
    const struct heap_stack *s = (const struct heap_stack *)heap_area(l->stacks) + c->stack;
    const uint64_t *frames = heap_area(l->frames);
    struct sums sums = {0};
    add(&sums, c);
    put_sums(f, &sums);
    uint16_t count = c->stack ? __atomic_load_n(&s->count, __ATOMIC_ACQUIRE) : 0;
    for (uint16_t i = 0; i < count; i++)
        alone_address(f, frames[(uint64_t)s->first * 4 + i]);
    alone_text(f, "\n");
}

static bool is_listed(const struct heap_cell *c)
{
    return !c->origin && c->kind == HEAP_BLOCKS;
}

static bool write_all(const char *path)
{
    static struct alone_file f; /* stacks may be small; `busy` is its lock */
    const struct heap_cell *cells = heap_area(heap_process->layout.cells);
    uint32_t used = __atomic_load_n(&heap_process->segment->cells_used, __ATOMIC_ACQUIRE);
    struct sums sums = {0};
    if (!alone_open(&f, path))
        return false;
    used = used < heap_process->layout.cell_count ? used : heap_process->layout.cell_count;
    for (uint32_t i = 1; i < used; i++)
        if (is_listed(&cells[i]))
            add(&sums, &cells[i]);
    alone_text(&f, "heap profile: ");
    put_sums(&f, &sums);
    alone_text(&f, " heapprofile\n");
    for (uint32_t i = 1; i < used; i++)
        if (cells[i].allocations && is_listed(&cells[i]))
            put_cell(&f, &cells[i]);
    alone_text(&f, "\nMAPPED_LIBRARIES:\n");
    alone_maps(&f);
    return alone_close(&f);
}

bool alone_heap_dump(void)
{
    char path[ALONE_PATH + 32];
    if (!heap_process || !heap_process->segment || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        return false;
    alone_name(path, alone.heap, ".", ++number, 4, ".heap");
    bool done = write_all(path);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return done;
}

void alone_heap_after(uint64_t size)
{
    uint64_t sum = __atomic_add_fetch(&allocated, size, __ATOMIC_RELAXED);
    int64_t live = __atomic_load_n(&heap_process->segment->total, __ATOMIC_RELAXED);
    uint64_t last = __atomic_load_n(&dumped_at, __ATOMIC_RELAXED);
    uint64_t high = __atomic_load_n(&highest, __ATOMIC_RELAXED);
    bool due = alone.allocation_interval && sum - last >= alone.allocation_interval &&
               __atomic_compare_exchange_n(&dumped_at, &last, sum, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
    if (alone.inuse_interval && live > 0 && (uint64_t)live >= high + alone.inuse_interval &&
        __atomic_compare_exchange_n(&highest, &high, (uint64_t)live, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        due = true;
    if (due)
        alone_heap_dump();
}
