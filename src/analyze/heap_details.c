/* Sizes of allocations, and which thread freed what another had allocated; see heap.h. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "base/map.h"
#include "base/memory.h"

#define CLASSES 64

static bool chosen(const struct selection *s, const struct profile_detail *d)
{
    return s->thread[d->thread] && (!s->stack || s->stack[d->stack]);
}

/* The class of its least size: 0, 16, 32, 64 … */
static unsigned class_of(uint64_t least)
{
    return least ? 63u - (unsigned)__builtin_clzll(least) : 0;
}

/* Powers of two need no digits behind a point: "32 to 64 KiB", "512 B to 1 KiB". */
static void class_name(unsigned class, struct text *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = class / 10, next = (class + 1) / 10;
    uint64_t least = class ? 1ull << class % 10 : 0;
    text_format(out, "%llu ", (unsigned long long)least);
    if (class == class_of(DETAIL_SIZE_LAST)) {
        text_format(out, "%s and more", units[unit]);
        return;
    }
    if (unit != next)
        text_format(out, "%s ", units[unit]);
    uint64_t end = class ? 1ull << (class + 1) % 10 : 16;
    text_format(out, "to %llu %s", (unsigned long long)(next ? end : end - 1), units[next]);
}

struct sizes {
    uint64_t sum[CLASSES], count;
    uint64_t (*by_node)[CLASSES];
};

static void add_sizes(struct sizes *z, const struct report *r, uint32_t event)
{
    const struct profile *p = r->selection->profile;
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        if (d->kind != DETAIL_SIZE || !chosen(r->selection, d))
            continue;
        uint32_t node = tree_node_of(r->tree, event, d->stack);
        z->sum[class_of(d->key)] += d->count;
        z->count += d->count;
        if (node != TREE_NONE)
            z->by_node[node][class_of(d->key)] += d->count;
    }
}

static void section_histogram(struct view *v, const struct sizes *z)
{
    enum { SIZE, COUNT, PERCENT, LEAST, COLUMNS };
    const struct view_column columns[COLUMNS] = {
        [SIZE] = {"size", "size", VIEW_TEXT},
        [COUNT] = {"count", "allocations", VIEW_COUNT},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [LEAST] = {"least", "least size", VIEW_BYTES, VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "sizes", "Sizes", columns, COLUMNS);
    struct text name = TEXT_INIT;
    for (unsigned i = 0; i < CLASSES; i++) {
        if (!z->sum[i])
            continue;
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        text_clear(&name);
        class_name(i, &name);
        row[SIZE] = view_text(s, name.data);
        row[COUNT] = view_number(z->sum[i]);
        row[PERCENT] = view_percent(z->sum[i], z->count);
        row[LEAST] = view_number(i ? 1ull << i : 0);
    }
    text_release(&name);
}

static void put_sizes(struct view_section *s, const struct report *r, const struct sizes *z,
                      uint32_t node)
{
    enum { COUNT, MEAN, FROM, TO, STACK, MOST };
    const struct tree_node *n = &r->tree->nodes.data[node];
    const uint64_t *by = z->by_node[node];
    unsigned from = CLASSES, most = 0, to = 0;
    for (unsigned i = 0; i < CLASSES; i++) {
        if (!by[i])
            continue;
        from = i < from ? i : from;
        most = by[i] > by[most] ? i : most;
        to = i;
    }
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[COUNT] = view_number(n->self_count);
    row[MEAN] = view_number(n->self_count ? n->self / n->self_count : 0);
    if (from < CLASSES) {
        struct text name = TEXT_INIT;
        row[FROM] = view_number(from ? 1ull << from : 0);
        class_name(most, &name);
        row[MOST] = view_text(s, name.data);
        if (to < class_of(DETAIL_SIZE_LAST))
            row[TO] = view_number(to ? (2ull << to) - 1 : 15);
        text_release(&name);
    }
    row[STACK] = heap_stack_value(s, r->tree, node);
}

static void section_by_stack(struct view *v, const struct report *r, const struct sizes *z)
{
    const struct view_column columns[] = {
        {"count", "allocations", VIEW_COUNT},
        {"mean", "mean", VIEW_BYTES},
        {"from", "from", VIEW_BYTES, 100},
        {"to", "up to", VIEW_BYTES, 100},
        {"stack", "stack", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
        {"most", "mostly", VIEW_TEXT},
    };
    const struct tree *t = r->tree;
    struct ranked *all = memory_array(t->nodes.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < t->nodes.len; i++)
        if (t->nodes.data[i].self_count)
            all[count++] =
                (struct ranked){i, tree_symbol(t, i)->name, {.self = t->nodes.data[i].self_count}};
    rank(all, count, REPORT_BY_SELF);
    struct view_section *s =
        view_add_table(v, "stacks", "Stacks", columns, sizeof columns / sizeof *columns);
    size_t shown = report_shown(r, count);
    for (size_t i = 0; i < shown; i++)
        put_sizes(s, r, z, all[i].id);
    s->omitted = count - shown;
    free(all);
}

void report_sizes(struct view *v, const struct report *r)
{
    struct heap_part part;
    heap_part_init(&part, r, "heap:allocated");
    struct sizes z = {.by_node = memory_array(part.tree.nodes.len + 1, sizeof *z.by_node)};
    view_init(v, "sizes", "sizes of allocations", "sizes");
    add_sizes(&z, &part.r, profile_event_find(part.tree.profile, "heap:allocated"));
    section_histogram(v, &z);
    section_by_stack(v, &part.r, &z);
    free(z.by_node);
    heap_part_release(&part);
}

/* One field of the matrix. */
struct owner {
    uint32_t from, by;
    uint64_t count, value;
};

struct owners {
    VECTOR(struct owner) all;
    struct map index;
    uint64_t value;
};

static void owner_add(struct owners *o, uint32_t from, uint32_t by, uint64_t count, uint64_t value)
{
    bool is_new;
    uint64_t *at = map_put(&o->index, (uint64_t)from << 32 | by, 0, o->all.len, &is_new);
    if (is_new)
        *vector_push(&o->all) = (struct owner){.from = from, .by = by};
    o->all.data[*at].count += count;
    o->all.data[*at].value += value;
    o->value += value;
}

static void owner_take(struct owners *o, uint32_t thread, uint64_t count, uint64_t value)
{
    const uint64_t *at = map_get(&o->index, (uint64_t)thread << 32 | thread, 0);
    if (!at)
        return;
    struct owner *own = &o->all.data[*at];
    count = count < own->count ? count : own->count;
    value = value < own->value ? value : own->value;
    own->count -= count;
    own->value -= value;
    o->value -= value;
}

/* What a thread freed of its own is what it allocated, less what is live, less what others freed.
 */
static void owners_init(struct owners *o, const struct selection *s)
{
    const struct profile *p = s->profile;
    struct selection part;
    size_t cursor = 0;
    *o = (struct owners){0};
    selection_init_event(&part, s, "heap:allocated");
    for (const struct profile_cell *c; (c = selection_next(&part, &cursor));)
        owner_add(o, c->thread, c->thread, c->count, c->value);
    selection_release(&part);
    selection_init_event(&part, s, "heap:live");
    cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(&part, &cursor));)
        owner_take(o, c->thread, c->count, c->value);
    selection_release(&part);
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        if (d->kind != DETAIL_RELEASED || !chosen(s, d))
            continue;
        owner_take(o, d->thread, d->count, d->value);
        owner_add(o, d->thread, (uint32_t)d->key, d->count, d->value);
    }
}

static int by_value(const void *left, const void *right)
{
    const struct owner *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? 1 : -1;
    return a->from != b->from ? (a->from > b->from) - (a->from < b->from) : (int)(a->by > b->by);
}

static struct view_value thread_value(struct view_section *s, const struct profile *p,
                                      uint32_t thread)
{
    const struct profile_thread *t = &p->threads.data[thread];
    char name[96];
    snprintf(name, sizeof name, "%d %.60s", t->tid, profile_text(p, t->name));
    return view_text(s, name);
}

static void section_matrix(struct view *v, const struct report *r, struct owners *o)
{
    enum { VALUE, PERCENT, COUNT, FROM, BY, FROM_TID, BY_TID, COLUMNS };
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"value", "bytes", VIEW_BYTES},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [COUNT] = {"count", "frees", VIEW_COUNT},
        [FROM] = {"from", "allocated by", VIEW_TEXT},
        [BY] = {"by", "freed by", VIEW_TEXT, .fill = true},
        [FROM_TID] = {"from_tid", "tid", VIEW_NUMBER, VIEW_MACHINES},
        [BY_TID] = {"by_tid", "tid", VIEW_NUMBER, VIEW_MACHINES},
    };
    const struct profile *p = r->selection->profile;
    struct view_section *s = view_add_table(v, "ownership", "Allocated by", columns, COLUMNS);
    if (o->all.len)
        qsort(o->all.data, o->all.len, sizeof *o->all.data, by_value);
    size_t shown = 0;
    for (size_t i = 0; i < o->all.len; i++) {
        const struct owner *at = &o->all.data[i];
        if (!at->count)
            continue;
        if (r->top && shown++ == r->top) {
            s->omitted++;
            continue;
        }
        struct view_value *row = view_row(s, 0, at->from == at->by ? VIEW_PLAIN : VIEW_STRONG);
        row[VALUE] = view_number(at->value);
        row[PERCENT] = view_percent(at->value, o->value);
        row[COUNT] = view_number(at->count);
        row[FROM] = thread_value(s, p, at->from);
        row[BY] = at->from == at->by ? view_text(s, "itself") : thread_value(s, p, at->by);
        row[FROM_TID] = view_number((uint64_t)p->threads.data[at->from].tid);
        row[BY_TID] = view_number((uint64_t)p->threads.data[at->by].tid);
    }
}

/* Stacks whose blocks other threads free. */
static void section_handed_over(struct view *v, const struct report *r)
{
    struct heap_part part;
    heap_part_init(&part, r, HEAP_RELEASED);
    if (!selection_empty(&part.selection))
        section_stacks(v, &part.r, "stacks", "Allocated here, freed by another thread", r->top);
    heap_part_release(&part);
}

void heap_released(struct profile *p)
{
    uint32_t event = PROFILE_NONE;
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail d = p->details.data[i];
        if (d.kind != DETAIL_RELEASED)
            continue;
        if (event == PROFILE_NONE)
            event = profile_event_add(p, HEAP_RELEASED, UNIT_BYTES, 0);
        profile_count(p, event, d.thread, d.stack, d.count, d.value);
    }
}

void report_ownership(struct view *v, const struct report *r)
{
    struct owners o;
    view_init(v, "ownership", "who frees what whom allocated", "ownership");
    owners_init(&o, r->selection);
    section_matrix(v, r, &o);
    section_handed_over(v, r);
    map_release(&o.index);
    vector_release(&o.all);
}
