/*
 * What the program has mapped itself, by address: a list in order, since pieces of any size may be
 * taken out of it. It is the process's own (a fork wipes it): sums are in the cells.
 */
#include "agent/heap.h"

#include <string.h>

#include "agent/publish.h"

#define MAPS 65536u /* the kernel's own usual bound */

struct map {
    uint64_t start, end;
    uint32_t cell;
    uint32_t part; /* cut off another one, which stands for the call */
};

static struct map *list; /* once made it stays, empty in a child */

static bool list_make(void)
{
    if (__atomic_load_n(&list, __ATOMIC_ACQUIRE))
        return true;
    if (!agent_quiet)
        __atomic_store_n(&list, publish_map_wiped(MAPS * sizeof *list), __ATOMIC_RELEASE);
    return list != NULL;
}

/* The first that ends after `address`. */
static uint32_t find(uint64_t address)
{
    uint32_t low = 0, high = heap_process->maps_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(uint32_t at, struct map m)
{
    uint32_t *count = &heap_process->maps_count;
    if (*count == MAPS)
        return false;
    memmove(&list[at + 1], &list[at], (*count - at) * sizeof *list);
    list[at] = m;
    ++*count;
    return true;
}

/* A hole in the middle of one: what is behind it becomes a part of its own. */
static void split(struct heap_thread *t, uint32_t at, uint64_t start, uint64_t end)
{
    struct map behind = {.start = end, .end = list[at].end, .cell = list[at].cell, .part = 1};
    heap_count_unmapped(t, behind.cell, end - start, false);
    if (!insert(at + 1, behind)) {
        heap_count_unmapped(t, behind.cell, behind.end - end, false);
        heap_refuse_mapping();
    }
    list[at].end = start;
}

enum heap_kind maps_remove_held(struct heap_thread *t, uint64_t start, uint64_t size)
{
    uint64_t end = start + size;
    uint32_t at = find(start), gone = at;
    if (gone >= heap_process->maps_count || list[gone].start >= end || end < start)
        return HEAP_MAPPED;
    enum heap_kind kind = t->cells[list[gone].cell].kind;
    for (; gone < heap_process->maps_count && list[gone].start < end; gone++) {
        struct map *m = &list[gone];
        if (m->start < start && m->end > end) {
            split(t, gone, start, end);
            return kind;
        }
        if (m->start < start) {
            heap_count_unmapped(t, m->cell, m->end - start, false);
            m->end = start;
            at = gone + 1;
        } else if (m->end > end) {
            heap_count_unmapped(t, m->cell, end - m->start, false);
            m->start = end;
            break;
        } else {
            heap_count_unmapped(t, m->cell, m->end - m->start, !m->part);
        }
    }
    memmove(&list[at], &list[gone], (heap_process->maps_count - gone) * sizeof *list);
    heap_process->maps_count -= gone - at;
    return kind;
}

void maps_add_held(struct heap_thread *t, uint64_t start, uint64_t size, uint32_t cell)
{
    bool done = false;
    __atomic_store_n(&t->slot->mappings, t->slot->mappings + 1, __ATOMIC_RELAXED);
    if (cell && list_make()) {
        maps_remove_held(t, start, size);
        done = insert(find(start), (struct map){.start = start, .end = start + size, cell, 0});
    }
    if (done)
        heap_count_mapped(t, cell, size);
    else
        heap_refuse_mapping();
}

bool maps_hold(struct heap_thread *t)
{
    return heap_lock(t, &heap_process->maps_lock);
}

void maps_let_go(struct heap_thread *t)
{
    heap_unlock(t, &heap_process->maps_lock);
}

void maps_remove(struct heap_thread *t, uint64_t start, uint64_t size)
{
    if (!__atomic_load_n(&heap_process->maps_count, __ATOMIC_ACQUIRE))
        return;
    if (!maps_hold(t)) {
        heap_refuse_mapping();
        return;
    }
    maps_remove_held(t, start, size);
    maps_let_go(t);
}

void maps_add(struct heap_thread *t, uint64_t start, uint64_t size, uint32_t cell)
{
    if (!maps_hold(t)) {
        heap_refuse_mapping();
        return;
    }
    maps_add_held(t, start, size, cell);
    maps_let_go(t);
}
