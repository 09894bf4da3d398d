/*
 * The heap as heaptrack_print tells it: who called most, who held the peak, who freed at once, what
 * was left, each by the function that asked and the stacks that led there; then the sums.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/places.h"

#define FUNCTIONS 10
#define STACKS 5

enum figure { CALLS, PEAK, TEMPORARY, LEAKED, FIGURES };

/* One stack's figures, or one function's: that of all stacks that end in it. */
struct row {
    uint32_t stack, leaf; /* places */
    uint64_t value[FIGURES];
};

struct heaptrack {
    const struct profile *p;
    struct sink *out;
    struct places places;
    VECTOR(struct row) stacks, functions;
    uint64_t sum[FIGURES];
};

static const struct {
    enum figure by;
    const char *title, *one, *each;
} tables[] = {
    {CALLS, "MOST CALLS TO ALLOCATION FUNCTIONS", "calls to allocation functions", "calls"},
    {PEAK, "PEAK MEMORY CONSUMERS", "peak memory consumed", "consumed"},
    {TEMPORARY, "MOST TEMPORARY ALLOCATIONS", "temporary allocations", "temporary allocations"},
    {LEAKED, "MEMORY LEAKS", "leaked", "leaked"},
};

static void add_event(struct heaptrack *h, uint32_t event, enum figure figure, uint32_t *index)
{
    for (size_t i = 0; event != PROFILE_NONE && i < h->p->cells.len; i++) {
        const struct profile_cell *c = &h->p->cells.data[i];
        uint64_t value = figure == CALLS || figure == TEMPORARY ? c->count : c->value;
        if (c->event != event || !value || !c->stack)
            continue;
        if (!index[c->stack]) {
            *vector_push(&h->stacks) = (struct row){.stack = c->stack};
            index[c->stack] = (uint32_t)h->stacks.len;
        }
        h->stacks.data[index[c->stack] - 1].value[figure] += value;
        h->sum[figure] += value;
    }
}

static void stacks_make(struct heaptrack *h)
{
    const struct profile *p = h->p;
    uint32_t *index = memory_array(p->stacks.len + 1, sizeof *index);
    uint32_t tree = profile_event_find(p, "heap:tree-peak");
    bool whole = tree != PROFILE_NONE && p->heaps.len > 1 && p->events.data[tree].value;
    add_event(h, profile_event_find(p, "heap:allocated"), CALLS, index);
    add_event(h, whole ? tree : profile_event_find(p, "heap:peak"), PEAK, index);
    add_event(h, profile_event_find(p, "heap:temporary"), TEMPORARY, index);
    add_event(h, profile_event_find(p, "heap:live"), LEAKED, index);
    free(index);
}

static void functions_make(struct heaptrack *h)
{
    struct map index = {0};
    for (size_t i = 0; i < h->stacks.len; i++) {
        struct row *s = &h->stacks.data[i];
        bool added;
        places_path(&h->places, s->stack);
        if (!h->places.path.len)
            continue;
        s->leaf = h->places.path.data[h->places.path.len - 1];
        uint64_t *at = map_put(&index, s->leaf, 0, h->functions.len, &added);
        if (added)
            *vector_push(&h->functions) = (struct row){.leaf = s->leaf};
        for (int k = 0; k < FIGURES; k++)
            h->functions.data[*at].value[k] += s->value[k];
    }
    map_release(&index);
}

static enum figure sorted_by;

static int by_figure(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    uint64_t x = a->value[sorted_by], y = b->value[sorted_by];
    if (x != y)
        return x < y ? 1 : -1;
    return (a->leaf > b->leaf) - (a->leaf < b->leaf);
}

/* "1.50M", as heaptrack writes sizes. */
static void put_bytes(struct heaptrack *h, uint64_t bytes)
{
    static const char *const units[] = {"B", "K", "M", "G", "T", "P"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    sink_format(h->out, unit ? "%.2f%s" : "%.0f%s", value, units[unit]);
}

static void put_figure(struct heaptrack *h, const struct row *r, enum figure by, const char *what)
{
    if (by == CALLS || by == TEMPORARY)
        sink_format(h->out, "%llu", (unsigned long long)r->value[by]);
    else
        put_bytes(h, r->value[by]);
    sink_format(h->out, " %s ", what);
    if (by == CALLS) {
        sink_text(h->out, "with ");
        put_bytes(h, r->value[PEAK]);
        sink_text(h->out, " peak consumption from");
    } else if (by == TEMPORARY) {
        sink_format(h->out, "of %llu allocations in total from",
                    (unsigned long long)r->value[CALLS]);
    } else {
        sink_format(h->out, "over %llu calls from", (unsigned long long)r->value[CALLS]);
    }
}

static void put_place(struct heaptrack *h, uint32_t place, const char *indent)
{
    const struct place *at = &h->places.items.data[place];
    const char *file = places_file(&h->places, place);
    struct text name = TEXT_INIT;
    places_name(&h->places, place, &name);
    sink_format(h->out, "%s%s\n", indent, name.data);
    if (*file)
        sink_format(h->out, "%s  at %s:%u\n", indent, file, at->line);
    text_clear(&name);
    text_add_printable(&name, profile_module_name(h->p, h->p->frames.data[at->frame].module));
    sink_format(h->out, "%s  in %s\n", indent, name.data);
    text_release(&name);
}

/* The function's stacks are in order already. */
static void put_function(struct heaptrack *h, const struct row *f, enum figure by, size_t table)
{
    size_t shown = 0;
    put_figure(h, f, by, tables[table].one);
    sink_text(h->out, "\n");
    put_place(h, f->leaf, "");
    for (size_t i = 0; i < h->stacks.len && shown < STACKS; i++) {
        const struct row *s = &h->stacks.data[i];
        if (s->leaf != f->leaf || !s->value[by])
            continue;
        put_figure(h, s, by, tables[table].each);
        sink_text(h->out, ":\n");
        places_path(&h->places, s->stack);
        for (size_t k = h->places.path.len - 1; k-- > 0;)
            put_place(h, h->places.path.data[k], "    ");
        shown++;
    }
    sink_text(h->out, "\n");
}

static void put_table(struct heaptrack *h, size_t table)
{
    enum figure by = tables[table].by;
    sorted_by = by;
    if (h->stacks.len)
        qsort(h->stacks.data, h->stacks.len, sizeof *h->stacks.data, by_figure);
    if (h->functions.len)
        qsort(h->functions.data, h->functions.len, sizeof *h->functions.data, by_figure);
    sink_format(h->out, "%s\n", tables[table].title);
    for (size_t i = 0; i < h->functions.len && i < FUNCTIONS; i++)
        if (h->functions.data[i].value[by])
            put_function(h, &h->functions.data[i], by, table);
    sink_text(h->out, "\n");
}

static uint64_t highest_rss(const struct profile *p)
{
    int64_t highest = 0;
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        for (size_t k = 0; !strcmp(profile_text(p, s->name), "rss") && k < s->points.len; k++)
            highest = s->points.data[k].value > highest ? s->points.data[k].value : highest;
    }
    return (uint64_t)highest;
}

static void put_sums(struct heaptrack *h)
{
    const struct profile *p = h->p;
    double seconds = p->end > p->start ? (double)(p->end - p->start) / 1e9 : 0;
    double per = seconds > 0 ? 1 / seconds : 0;
    sink_format(h->out, "total runtime: %.2fs.\n", seconds);
    sink_format(h->out, "calls to allocation functions: %llu (%.0f/s)\n",
                (unsigned long long)h->sum[CALLS], (double)h->sum[CALLS] * per);
    sink_format(h->out, "temporary memory allocations: %llu (%.0f/s)\n",
                (unsigned long long)h->sum[TEMPORARY], (double)h->sum[TEMPORARY] * per);
    sink_text(h->out, "peak heap memory consumption: ");
    put_bytes(h, h->sum[PEAK]);
    sink_text(h->out, "\npeak RSS: ");
    put_bytes(h, highest_rss(p));
    sink_text(h->out, "\ntotal memory leaked: ");
    put_bytes(h, h->sum[LEAKED]);
    sink_text(h->out, "\n");
}

static int heaptrack_write(const struct profile *p, const struct export_options *options,
                           struct sink *out, struct error *err)
{
    (void)options;
    if (profile_event_find(p, "heap:allocated") == PROFILE_NONE)
        return error_set(err, FAULT_MISSING,
                         "there is no heap in this recording; make one with `sonde run --heap`");
    struct heaptrack h = {.p = p, .out = out};
    places_init(&h.places, p);
    stacks_make(&h);
    functions_make(&h);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        put_table(&h, i);
    put_sums(&h);
    vector_release(&h.stacks);
    vector_release(&h.functions);
    places_release(&h.places);
    return 0;
}

static const char *const extensions[] = {".heaptrack.txt", NULL};

const struct format format_heaptrack = {
    .name = "heaptrack",
    .description = "the heap as text, in the manner of heaptrack_print",
    .extensions = extensions,
    .write = heaptrack_write,
};
