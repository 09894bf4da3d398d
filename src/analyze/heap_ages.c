/*
 * The age of what is live at the end, and what never lived long; see heap.h. The agent keeps no
 * time with a block, so ages are those of amounts: a stack that never held less than 5 MB in the
 * last minute has 5 MB that are a minute old, whichever blocks they are.
 */
#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

#define SECOND 1000000000ull

static const struct {
    uint64_t least;
    const char *name;
} classes[] = {{0, "less than 0.1 s"},         {SECOND / 10, "0.1 s to 1 s"},
               {SECOND, "1 s to 10 s"},        {10 * SECOND, "10 s to 1 min"},
               {60 * SECOND, "1 to 10 min"},   {600 * SECOND, "10 min to 1 h"},
               {3600 * SECOND, "1 h and more"}};

#define CLASSES (sizeof classes / sizeof *classes)

struct aged {
    uint32_t node;
    uint64_t live, half; /* half of it is at least so old */
    struct heap_short gone;
};

struct ages {
    const struct report *r; /* over what is live */
    uint32_t live_event, allocated_event;
    const struct tree *allocated;
    uint64_t sum[CLASSES], live;
    struct aged *by_node, *by_allocated; /* of r->tree; of `allocated` */
};

/* How much of it was there the whole time since `time`. */
static uint64_t held_since(const struct heap_history *h, uint64_t time)
{
    uint64_t least = h->steps[h->count - 1].live;
    for (size_t i = h->count; i-- > 0;) {
        least = h->steps[i].live < least ? h->steps[i].live : least;
        if (h->steps[i].time <= time)
            return least;
    }
    return 0;
}

static uint64_t half_age(const struct heap_history *h, uint64_t end)
{
    uint64_t half = (h->steps[h->count - 1].live + 1) / 2, since = end;
    for (size_t i = h->count; i-- > 0 && h->steps[i].live >= half;)
        since = h->steps[i].time;
    return end - since;
}

/* Stacks of a program that was replaced or ended are as old as they were then. */
static uint64_t end_of(const struct profile *p, const struct heap_history *h)
{
    uint32_t process = p->threads.data[h->thread].process;
    uint64_t end = 0, last = h->steps[h->count - 1].time;
    for (size_t i = 0; i < p->heaps.len; i++)
        if (p->heaps.data[i].process == process && p->heaps.data[i].time >= last &&
            (!end || p->heaps.data[i].time < end))
            end = p->heaps.data[i].time;
    return end ? end : last;
}

static void add_history(void *context, const struct heap_history *h)
{
    struct ages *a = context;
    const struct selection *s = a->r->selection;
    if (!s->thread[h->thread] || (s->stack && !s->stack[h->stack]))
        return;
    uint32_t node = tree_node_of(a->allocated, a->allocated_event, h->stack);
    if (node != TREE_NONE)
        heap_history_short(h, &a->by_allocated[node].gone);
    uint64_t live = h->steps[h->count - 1].live, end = end_of(s->profile, h), older = live;
    node = live ? tree_node_of(a->r->tree, a->live_event, h->stack) : TREE_NONE;
    if (node == TREE_NONE)
        return;
    for (size_t i = 0; i < CLASSES; i++) {
        uint64_t next = i + 1 < CLASSES && end > classes[i + 1].least
                            ? held_since(h, end - classes[i + 1].least)
                            : 0;
        a->sum[i] += older - next;
        older = next;
    }
    struct aged *at = &a->by_node[node];
    uint64_t half = half_age(h, end);
    at->half = half > at->half ? half : at->half;
    at->live += live;
    a->live += live;
}

static void section_classes(struct view *v, const struct ages *a)
{
    enum { AGE, VALUE, PERCENT, LEAST, COLUMNS };
    const struct view_column columns[COLUMNS] = {
        [AGE] = {"age", "age", VIEW_TEXT},
        [VALUE] = {"value", "bytes", VIEW_BYTES},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [LEAST] = {"least", "least age", VIEW_DURATION, VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "ages", "Live at the end", columns, COLUMNS);
    for (size_t i = 0; i < CLASSES; i++) {
        if (!a->sum[i])
            continue;
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[AGE] = view_text(s, classes[i].name);
        row[VALUE] = view_number(a->sum[i]);
        row[PERCENT] = view_percent(a->sum[i], a->live);
        row[LEAST] = view_number(classes[i].least);
    }
}

static int by_live(const void *left, const void *right)
{
    const struct aged *a = left, *b = right;
    return (a->live < b->live) - (a->live > b->live);
}

static int by_gone(const void *left, const void *right)
{
    const struct aged *a = left, *b = right;
    return (a->gone.bytes < b->gone.bytes) - (a->gone.bytes > b->gone.bytes);
}

static void section_aged(struct view *v, const struct ages *a)
{
    enum { VALUE, HALF, STACK, COLUMNS };
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"value", "bytes", VIEW_BYTES},
        [HALF] = {"half", "half older than", VIEW_DURATION},
        [STACK] = {"stack", "stack", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
    };
    struct view_section *s = view_add_table(v, "stacks", "Stacks", columns, COLUMNS);
    size_t count = a->r->tree->nodes.len, shown = 0;
    qsort(a->by_node, count, sizeof *a->by_node, by_live);
    for (size_t i = 0; i < count && a->by_node[i].live; i++) {
        if (a->r->top && shown++ == a->r->top)
            break;
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[VALUE] = view_number(a->by_node[i].live);
        row[HALF] = view_number(a->by_node[i].half);
        row[STACK] = heap_stack_value(s, a->r->tree, a->by_node[i].node);
    }
}

static void section_gone(struct view *v, const struct ages *a)
{
    enum { VALUE, COUNT, STACK, COLUMNS };
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"value", "at least", VIEW_BYTES},
        [COUNT] = {"count", "allocations", VIEW_COUNT},
        [STACK] = {"stack", "stack", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
    };
    struct view_section *s = view_add_table(
        v, "short_lived", "Freed before the recorder looked again", columns, COLUMNS);
    size_t count = a->allocated->nodes.len, shown = 0;
    qsort(a->by_allocated, count, sizeof *a->by_allocated, by_gone);
    for (size_t i = 0; i < count && a->by_allocated[i].gone.bytes; i++) {
        if (a->r->top && shown++ == a->r->top)
            break;
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[VALUE] = view_number(a->by_allocated[i].gone.bytes);
        row[COUNT] = view_number(a->by_allocated[i].gone.allocations);
        row[STACK] = heap_stack_value(s, a->allocated, a->by_allocated[i].node);
    }
}

static struct aged *aged_of(const struct tree *t)
{
    struct aged *all = memory_array(t->nodes.len + 1, sizeof *all);
    for (uint32_t i = 0; i < t->nodes.len; i++)
        all[i] = (struct aged){.node = i};
    return all;
}

void report_ages(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    struct heap_part live, allocated;
    heap_part_init(&live, r, "heap:live");
    heap_part_init(&allocated, r, "heap:allocated");
    struct ages a = {.r = &live.r,
                     .allocated = &allocated.tree,
                     .live_event = profile_event_find(p, "heap:live"),
                     .allocated_event = profile_event_find(p, "heap:allocated"),
                     .by_node = aged_of(&live.tree),
                     .by_allocated = aged_of(&allocated.tree)};
    view_init(v, "ages", "how long memory lives", "stacks");
    heap_histories(p, add_history, &a);
    section_classes(v, &a);
    section_aged(v, &a);
    section_gone(v, &a);
    free(a.by_node);
    free(a.by_allocated);
    heap_part_release(&allocated);
    heap_part_release(&live);
}
