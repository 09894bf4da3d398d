/* Sums of the heap by process, and parts of a report; see heap_internal.h. */
#include <stdlib.h>
#include <sys/wait.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

bool heap_recorded(const struct profile *p)
{
    return p->heaps.len > 0;
}

int heap_missing(const struct profile *p, const char *file, struct error *err)
{
    bool wanted = profile_meta_get(p, "heap_mode") != NULL;
    if (wanted && !p->complete)
        return error_set(err, FAULT_MISSING,
                         "%s has no end: the recorder was killed or is still running, and had not "
                         "written yet what a process held",
                         file);
    if (wanted)
        return error_set(err, FAULT_MISSING,
                         "%s was made with --heap, but no process had the agent in it: it cannot "
                         "be brought into programs that are static, set-user-ID or end at once",
                         file);
    for (size_t i = 0; i < p->events.len; i++)
        if (p->events.data[i].unit == UNIT_BYTES && p->events.data[i].value)
            return error_set(
                err, FAULT_MISSING,
                "%s has sums of memory by stack, and neither peaks nor who freed what; "
                "look at them with --event %s",
                file, profile_text(p, p->events.data[i].name));
    return error_set(err, FAULT_MISSING,
                     "%s says nothing about memory; record it with `sonde run --heap`", file);
}

bool heap_alone(const struct profile *p)
{
    for (size_t i = 0; i < p->events.len; i++)
        if (p->events.data[i].samples &&
            !text_starts(profile_text(p, p->events.data[i].name), "heap:"))
            return false;
    return heap_recorded(p);
}

uint64_t heap_time(const struct profile *p, uint64_t time)
{
    return time > p->start ? time - p->start : 0;
}

bool heap_ended_in_order(const struct profile_process *q)
{
    return q->ended && !(q->status_known && WIFSIGNALED(q->status));
}

static uint64_t number_of(const struct profile *p, const char *key)
{
    const char *text = profile_meta_get(p, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void add_heaps(struct heap_sums *h, const struct profile *p)
{
    for (size_t i = 0; i < p->heaps.len; i++) {
        const struct profile_heap *heap = &p->heaps.data[i];
        if (heap->process >= p->processes.len)
            continue;
        struct heap_process *q = &h->by_process[heap->process];
        if (heap->peak >= q->peak) {
            q->peak = heap->peak;
            q->peak_time = heap->peak_time;
        }
        q->known = true;
        q->programs++;
        q->left += q->last;
        q->last = heap->live;
    }
}

static void add_cells(struct heap_sums *h, const struct selection *s, const char *event,
                      size_t value_at, size_t count_at)
{
    const struct profile *p = s->profile;
    struct selection one;
    size_t cursor = 0;
    selection_init_event(&one, s, event);
    for (const struct profile_cell *c; (c = selection_next(&one, &cursor));) {
        char *q = (char *)&h->by_process[p->threads.data[c->thread].process];
        *(uint64_t *)(void *)(q + value_at) += c->value;
        *(uint64_t *)(void *)(q + count_at) += c->count;
    }
    selection_release(&one);
}

#define ADD(event, value, count)                                                                   \
    add_cells(h, s, event, offsetof(struct heap_process, value),                                   \
              offsetof(struct heap_process, count))

void heap_sums_init(struct heap_sums *h, const struct selection *s)
{
    const struct profile *p = s->profile;
    *h = (struct heap_sums){.tree_peak = number_of(p, "heap_tree_peak"),
                            .tree_peak_time = number_of(p, "heap_tree_peak_time")};
    h->by_process = memory_array(p->processes.len + 1, sizeof *h->by_process);
    add_heaps(h, p);
    ADD("heap:allocated", allocated, allocations);
    ADD("heap:temporary", temporary, temporary_count);
    ADD("heap:live", live, live_blocks);
    for (size_t i = 0; i < p->threads.len; i++)
        h->by_process[p->threads.data[i].process].chosen |= s->thread[i];
    for (size_t i = 0; i < p->processes.len; i++) {
        const struct heap_process *q = &h->by_process[i];
        if (!q->known || !q->chosen)
            continue;
        h->processes++;
        h->all.peak += q->peak;
        h->all.allocated += q->allocated;
        h->all.allocations += q->allocations;
        h->all.temporary += q->temporary;
        h->all.temporary_count += q->temporary_count;
        h->all.live += q->live;
        h->all.live_blocks += q->live_blocks;
        if (h->processes == 1)
            h->all.peak_time = q->peak_time;
    }
}

void heap_sums_release(struct heap_sums *h)
{
    free(h->by_process);
}

const char *heap_peak_event(const struct selection *s)
{
    struct heap_sums h;
    struct selection tree;
    heap_sums_init(&h, s);
    selection_init_event(&tree, s, "heap:tree-peak");
    bool whole = h.processes > 1 && tree.value;
    heap_sums_release(&h);
    selection_release(&tree);
    return whole ? "heap:tree-peak" : "heap:peak";
}

void heap_part_init(struct heap_part *part, const struct report *r, const char *event)
{
    selection_init_event(&part->selection, r->selection, event);
    tree_init(&part->tree, &part->selection, &(struct tree_options){.by_module = true});
    tree_sort(&part->tree, TREE_BY_TOTAL);
    part->r = *r;
    part->r.selection = &part->selection;
    part->r.tree = &part->tree;
}

void heap_part_release(struct heap_part *part)
{
    tree_release(&part->tree);
    selection_release(&part->selection);
}
