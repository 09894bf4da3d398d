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
        __atomic_fetch_add(&t->segment->mappings_lost, 1, __ATOMIC_RELAXED);
    }
    list[at].end = start;
}

static uint32_t remove_locked(struct heap_thread *t, uint64_t start, uint64_t end)
{
    uint32_t at = find(start), gone = at, first = 0;
    for (; gone < heap_process->maps_count && list[gone].start < end; gone++) {
        struct map *m = &list[gone];
        first = first ? first : m->cell;
        if (m->start < start && m->end > end) {
            split(t, gone, start, end);
            return first;
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
    return first;
}

uint32_t maps_remove(struct heap_thread *t, uint64_t start, uint64_t size)
{
    if (!__atomic_load_n(&heap_process->maps_count, __ATOMIC_ACQUIRE) || start + size < start)
        return 0;
    if (!heap_lock(t, &heap_process->maps_lock)) {
        __atomic_fetch_add(&t->segment->mappings_lost, 1, __ATOMIC_RELAXED);
        return 0;
    }
    uint32_t cell = remove_locked(t, start, start + size);
    heap_unlock(t, &heap_process->maps_lock);
    return cell;
}

void maps_add(struct heap_thread *t, uint64_t start, uint64_t size, uint32_t cell)
{
    bool done = false;
    __atomic_store_n(&t->slot->mappings, t->slot->mappings + 1, __ATOMIC_RELAXED);
    if (cell && heap_lock(t, &heap_process->maps_lock)) {
        if (list_make()) {
            remove_locked(t, start, start + size);
            done = insert(find(start), (struct map){.start = start, .end = start + size, cell, 0});
        }
        heap_unlock(t, &heap_process->maps_lock);
    }
    if (done)
        heap_count_mapped(t, cell, size);
    else
        __atomic_fetch_add(&t->segment->mappings_lost, 1, __ATOMIC_RELAXED);
}
