/*
 * What massif writes, for ms_print and massif-visualizer: the heaps of all processes together over
 * time, and who held the peak, from the caller of the allocator outwards.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/places.h"

#define SNAPSHOTS 200
#define THRESHOLD 1 /* per cent */
#define DEPTH 64

struct point {
    uint64_t time;
    uint64_t bytes;
};

struct node {
    uint32_t place, parent;
    uint64_t bytes;
    uint32_t children;
};

struct massif {
    const struct profile *p;
    struct sink *out;
    struct places places;
    VECTOR(struct point) points;
    VECTOR(struct node) nodes; /* 0 is the root; parents come first */
    struct map index;
    uint32_t *order; /* nodes by parent, then by size */
};

struct change {
    uint64_t time;
    int64_t by;
};

static int by_time(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

/* The sum of every process's curve, step by step. A heap ends with its process. */
static void points_make(struct massif *m)
{
    const struct profile *p = m->p;
    VECTOR(struct change) all = {0};
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        int64_t last = 0;
        if (s->thread != PROFILE_NONE || s->process == PROFILE_NONE ||
            strcmp(profile_text(p, s->name), "heap") != 0)
            continue;
        for (size_t k = 0; k < s->points.len; k++) {
            *vector_push(&all) =
                (struct change){s->points.data[k].time, s->points.data[k].value - last};
            last = s->points.data[k].value;
        }
        const struct profile_process *q = &p->processes.data[s->process];
        if (q->ended)
            *vector_push(&all) = (struct change){q->end, -last};
    }
    if (all.len)
        qsort(all.data, all.len, sizeof *all.data, by_time);
    int64_t sum = 0;
    for (size_t i = 0; i < all.len; i++) {
        sum += all.data[i].by;
        *vector_push(&m->points) =
            (struct point){all.data[i].time > p->start ? all.data[i].time - p->start : 0,
                           sum > 0 ? (uint64_t)sum : 0};
    }
    vector_release(&all);
}

static uint32_t child(struct massif *m, uint32_t parent, uint32_t place)
{
    bool added;
    uint64_t *at = map_put(&m->index, (uint64_t)parent << 32 | place, 0, m->nodes.len, &added);
    uint32_t node = (uint32_t)*at;
    if (added) {
        m->nodes.data[parent].children++;
        *vector_push(&m->nodes) = (struct node){.place = place, .parent = parent};
    }
    return node;
}

static void tree_make(struct massif *m, uint32_t event)
{
    const struct profile *p = m->p;
    *vector_push(&m->nodes) = (struct node){0};
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (c->event != event || !c->value)
            continue;
        uint32_t node = 0;
        places_path(&m->places, c->stack);
        m->nodes.data[0].bytes += c->value;
        for (size_t k = m->places.path.len; k-- > 0 && m->places.path.len - k < DEPTH;) {
            node = child(m, node, m->places.path.data[k]);
            m->nodes.data[node].bytes += c->value;
        }
    }
}

static const struct node *sorted;

static int by_parent(const void *left, const void *right)
{
    const struct node *a = &sorted[*(const uint32_t *)left], *b = &sorted[*(const uint32_t *)right];
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return 0;
}

static void put_line(struct massif *m, uint32_t depth, uint64_t children, uint64_t bytes)
{
    for (uint32_t i = 0; i < depth; i++)
        sink_text(m->out, " ");
    sink_format(m->out, "n%llu: %llu ", (unsigned long long)children, (unsigned long long)bytes);
}

static void put_place(struct massif *m, uint32_t place)
{
    struct text name = TEXT_INIT;
    const struct place *at = &m->places.items.data[place];
    const char *file = places_file(&m->places, place);
    const char *slash = strrchr(file, '/');
    places_name(&m->places, place, &name);
    sink_format(m->out, "0x%llX: %s", (unsigned long long)m->p->frames.data[at->frame].address,
                name.data);
    if (*file)
        sink_format(m->out, " (%s:%u)", slash ? slash + 1 : file, at->line);
    sink_text(m->out, "\n");
    text_release(&name);
}

/* What massif does not show of a node it gathers up in one line. */
static void put_node(struct massif *m, const uint32_t *first, uint32_t node, uint32_t depth)
{
    const struct node *n = &m->nodes.data[node];
    uint64_t least = m->nodes.data[0].bytes * THRESHOLD / 100, hidden = 0;
    uint32_t shown = 0, begin = first[node], end = begin + n->children;
    while (begin + shown < end && m->nodes.data[m->order[begin + shown]].bytes >= least)
        shown++;
    for (uint32_t i = begin + shown; i < end; i++)
        hidden += m->nodes.data[m->order[i]].bytes;
    put_line(m, depth, shown + (hidden > 0), n->bytes);
    if (node)
        put_place(m, n->place);
    else
        sink_text(m->out, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n");
    for (uint32_t i = 0; i < shown; i++)
        put_node(m, first, m->order[begin + i], depth + 1);
    if (!hidden)
        return;
    uint32_t places = n->children - shown;
    put_line(m, depth + 1, 0, hidden);
    sink_format(m->out, "in %u place%s, %sbelow massif's threshold (%d.00%%)\n", places,
                places > 1 ? "s" : "", places > 1 ? "all " : "", THRESHOLD);
}

static void put_tree(struct massif *m)
{
    size_t count = m->nodes.len;
    uint32_t *first = memory_array(count + 1, sizeof *first);
    m->order = memory_array(count + 1, sizeof *m->order);
    for (uint32_t i = 1; i < count; i++)
        m->order[i - 1] = i;
    sorted = m->nodes.data;
    qsort(m->order, count - 1, sizeof *m->order, by_parent);
    for (uint32_t i = (uint32_t)count - 1; i-- > 0;)
        first[m->nodes.data[m->order[i]].parent] = i;
    put_node(m, first, 0, 0);
    free(first);
    free(m->order);
}

static void put_snapshot(struct massif *m, unsigned number, const struct point *at, bool peak)
{
    sink_format(m->out,
                "#-----------\nsnapshot=%u\n#-----------\ntime=%llu\nmem_heap_B=%llu\n"
                "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
                number, (unsigned long long)(at->time / 1000000), (unsigned long long)at->bytes,
                peak ? "peak" : "empty");
    if (peak)
        put_tree(m);
}

/* The peak itself lies between two points of the curve. */
static void put_snapshots(struct massif *m, struct point peak)
{
    size_t step = m->points.len / SNAPSHOTS + 1;
    unsigned number = 0;
    bool told = false;
    for (size_t i = 0; i < m->points.len; i += step) {
        if (!told && m->points.data[i].time >= peak.time) {
            put_snapshot(m, number++, &peak, true);
            told = true;
        }
        if (m->points.data[i].bytes <= peak.bytes)
            put_snapshot(m, number++, &m->points.data[i], false);
    }
    if (!told)
        put_snapshot(m, number, &peak, true);
}

static uint64_t peak_time(const struct profile *p, bool tree)
{
    const char *text = tree ? profile_meta_get(p, "heap_tree_peak_time") : NULL;
    uint64_t time = text ? strtoull(text, NULL, 10) : p->heaps.len ? p->heaps.data[0].peak_time : 0;
    return time > p->start ? time - p->start : 0;
}

static int massif_write(const struct profile *p, const struct export_options *options,
                        struct sink *out, struct error *err)
{
    uint32_t event = profile_event_find(p, "heap:tree-peak");
    bool tree = event != PROFILE_NONE && p->heaps.len > 1 && p->events.data[event].value;
    if (!tree)
        event = profile_event_find(p, "heap:peak");
    if (options->event != PROFILE_NONE)
        event = options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING,
                         "there is no heap in this recording; make one with `sonde run --heap`");
    struct massif m = {.p = p, .out = out};
    const char *command = profile_meta_get(p, "command");
    struct text clean = TEXT_INIT;
    text_add_printable(&clean, command ? command : "unknown");
    places_init(&m.places, p);
    points_make(&m);
    tree_make(&m, event);
    sink_format(out, "desc: sonde\ncmd: %s\ntime_unit: ms\n", clean.data);
    put_snapshots(&m, (struct point){peak_time(p, tree), m.nodes.data[0].bytes});
    text_release(&clean);
    vector_release(&m.points);
    vector_release(&m.nodes);
    map_release(&m.index);
    places_release(&m.places);
    return 0;
}

static const char *const extensions[] = {".massif", NULL};

const struct format format_massif = {
    .name = "massif",
    .description = "the heap over time and at its peak, for ms_print and massif-visualizer",
    .extensions = extensions,
    .write = massif_write,
};
