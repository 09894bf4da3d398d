/*
 * The page's document: a head in JSON (who ran, what is counted, notes) and columns of numbers
 * (symbols, frames, stacks, sums). One writer for the whole and for deltas: a delta starts where
 * the mark stands. docs/PAGE.md draws it.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/heap.h"
#include "base/memory.h"
#include "profile/interpreter.h"
#include "render/page_internal.h"

#define MAGIC "SPD1"

struct page *page_new(const struct profile *p, const struct page_options *o)
{
    struct page *g = memory_alloc(sizeof *g);
    g->profile = p;
    if (o)
        g->options = *o;
    names_add(&g->strings, "");
    lexicon_init(&g->lexicon, p);
    timeline_init(&g->timeline, p, TIMELINE_ROWS);
    timeline_init(&g->mark.fresh, p, TIMELINE_ROWS);
    spans_init(&g->spans, p);
    page_update(g);
    return g;
}

void page_free(struct page *g)
{
    if (!g)
        return;
    lexicon_release(&g->lexicon);
    timeline_release(&g->timeline);
    timeline_release(&g->mark.fresh);
    spans_release(&g->spans);
    names_release(&g->strings);
    vector_release(&g->changed);
    vector_release(&g->mark.cells);
    vector_release(&g->mark.series);
    free(g);
}

uint64_t page_sequence(const struct page *g)
{
    return g->mark.sequence;
}

uint32_t page_string(struct page *g, const char *text)
{
    return names_add(&g->strings, text);
}

void page_update(struct page *g)
{
    lexicon_update(&g->lexicon);
    spans_update(&g->spans);
    for (size_t i = 0; i < g->lexicon.changed.len; i++)
        *vector_push(&g->changed) = g->lexicon.changed.data[i];
    /* Should the disk fail, the sums are still in the cells: only when they arose is not told. */
    (void)timeline_add(&g->timeline, NULL);
    if (!g->options.live)
        return;
    if (!g->mark.fresh.rows.len)
        g->mark.fresh.width = g->timeline.width;
    (void)timeline_add(&g->mark.fresh, NULL);
}

static void put_modules(struct page *g, struct columns *c, size_t from)
{
    const struct profile *p = g->profile;
    struct column *name = column_add(c, "module.name", COLUMN_PLAIN);
    struct column *path = column_add(c, "module.path", COLUMN_PLAIN);
    struct column *kind = column_add(c, "module.kind", COLUMN_PLAIN);
    struct column *note = column_add(c, "module.note", COLUMN_PLAIN);
    for (size_t i = from; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        column_put(name, page_string(g, profile_module_name(p, (uint32_t)i)));
        column_put(path, page_string(g, profile_text(p, m->path)));
        column_put(kind, m->kind);
        column_put(note, page_string(g, profile_text(p, m->note)));
    }
}

/* A finished recording is read without these; of one that goes on names come later than stacks,
 * so the page leaves them out itself. */
static unsigned role_of(const struct profile *p, const struct tree_symbol *s)
{
    if (s->module >= p->modules.len || p->modules.data[s->module].kind != CODE_ELF)
        return 0;
    if (interpreter_way(s->name, profile_module_name(p, s->module)))
        return 1;
    return heap_is_allocator(s->name) ? 2 : 0;
}

static void put_symbols(struct page *g, struct columns *c, size_t from)
{
    const struct profile *p = g->profile;
    struct column *name = column_add(c, "symbol.name", COLUMN_DELTA);
    struct column *module = column_add(c, "symbol.module", COLUMN_PLAIN);
    struct column *file = column_add(c, "symbol.file", COLUMN_DELTA);
    struct column *line = column_add(c, "symbol.line", COLUMN_PLAIN);
    struct column *nameless = column_add(c, "symbol.nameless", COLUMN_PLAIN);
    struct column *role = g->options.live ? column_add(c, "symbol.role", COLUMN_PLAIN) : NULL;
    for (size_t i = from; i < g->lexicon.symbols.len; i++) {
        const struct tree_symbol *s = &g->lexicon.symbols.data[i];
        const struct profile_function *f =
            s->function < p->functions.len ? &p->functions.data[s->function] : NULL;
        column_put(name, page_string(g, s->name));
        column_put(module, s->module < p->modules.len ? s->module + 1 : 0);
        column_put(file, f ? page_string(g, profile_text(p, f->file)) : 0);
        column_put(line, f ? f->start_line : 0);
        column_put(nameless, s->without_name);
        if (role)
            column_put(role, role_of(p, s));
    }
}

static void put_frame(struct page *g, uint32_t frame, struct column *count, struct column *symbol,
                      struct column *line)
{
    uint32_t first = g->lexicon.first.data[frame], steps = g->lexicon.count.data[frame];
    column_put(count, steps);
    for (uint32_t i = first; i < first + steps; i++) {
        column_put(symbol, g->lexicon.steps.data[i].symbol);
        column_put(line, g->lexicon.steps.data[i].line);
    }
}

static void put_frames(struct page *g, struct columns *c)
{
    struct column *at = column_add(c, "frame.at", COLUMN_DELTA);
    struct column *steps = column_add(c, "frame.steps", COLUMN_PLAIN);
    struct column *symbol = column_add(c, "step.symbol", COLUMN_DELTA);
    struct column *line = column_add(c, "step.line", COLUMN_DELTA);
    size_t len = g->whole ? g->lexicon.first.len : g->changed.len;
    for (size_t i = 0; i < len; i++) {
        uint32_t frame = g->whole ? (uint32_t)i : g->changed.data[i];
        column_put(at, frame);
        put_frame(g, frame, steps, symbol, line);
    }
}

static void put_stacks(struct page *g, struct columns *c, size_t from)
{
    const struct profile *p = g->profile;
    struct column *up = column_add(c, "stack.up", COLUMN_PLAIN);
    struct column *frame = column_add(c, "stack.frame", COLUMN_DELTA);
    for (size_t i = from; i < p->stacks.len; i++) {
        uint32_t parent = p->stacks.data[i].parent;
        column_put(up, parent < i ? i - parent : i);
        column_put(frame, i ? p->stacks.data[i].frame : 0);
    }
}

struct cell_columns {
    struct column *event, *thread, *stack, *count, *value;
};

static struct cell_columns cell_columns_add(struct columns *c, const char *const names[5])
{
    return (struct cell_columns){
        column_add(c, names[0], COLUMN_DELTA), column_add(c, names[1], COLUMN_DELTA),
        column_add(c, names[2], COLUMN_DELTA), column_add(c, names[3], COLUMN_SIGNED),
        column_add(c, names[4], COLUMN_SIGNED)};
}

/* A value is mostly its count times the period: what is written is the difference, mostly 0. */
static uint64_t beyond_period(const struct profile *p, uint32_t event, uint64_t count,
                              uint64_t value)
{
    return value - count * p->events.data[event].period;
}

/* Cells by event, thread and stack: a pass for the stacks, then one for the rest. */
static uint32_t *order_cells(const struct profile *p)
{
    size_t len = p->cells.len, threads = p->threads.len, groups = p->events.len * threads;
    size_t keys = (p->stacks.len > groups ? p->stacks.len : groups) + 2;
    uint32_t *by_stack = memory_array(len + 1, sizeof *by_stack);
    uint32_t *order = memory_array(len + 1, sizeof *order);
    size_t *at = memory_array(keys, sizeof *at);
    for (size_t i = 0; i < len; i++)
        at[p->cells.data[i].stack + 1]++;
    for (size_t i = 1; i < keys; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < len; i++)
        by_stack[at[p->cells.data[i].stack]++] = (uint32_t)i;
    memset(at, 0, keys * sizeof *at);
    for (size_t i = 0; i < len; i++)
        at[p->cells.data[i].event * threads + p->cells.data[i].thread + 1]++;
    for (size_t i = 1; i < keys; i++)
        at[i] += at[i - 1];
    for (size_t i = 0; i < len; i++) {
        const struct profile_cell *c = &p->cells.data[by_stack[i]];
        order[at[c->event * threads + c->thread]++] = by_stack[i];
    }
    free(at);
    free(by_stack);
    return order;
}

static void put_cells(struct page *g, struct columns *c)
{
    static const char *const names[] = {"cell.event", "cell.thread", "cell.stack", "cell.count",
                                        "cell.value"};
    const struct profile *p = g->profile;
    struct cell_columns to = cell_columns_add(c, names);
    uint32_t *order = order_cells(p);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *cell = &p->cells.data[order[i]];
        struct sent_cell was = {0};
        if (!g->whole && order[i] < g->mark.cells.len)
            was = g->mark.cells.data[order[i]];
        uint64_t count = cell->count - was.count, value = cell->value - was.value;
        if (!count && !value)
            continue;
        column_put(to.event, cell->event);
        column_put(to.thread, cell->thread);
        column_put(to.stack, cell->stack);
        column_put(to.count, count);
        column_put(to.value, beyond_period(p, cell->event, count, value));
    }
    free(order);
}

static void put_timeline(struct page *g, struct columns *c)
{
    static const char *const names[] = {"time.event", "time.thread", "time.stack", "time.count",
                                        "time.value"};
    struct timeline *t = g->whole ? &g->timeline : &g->mark.fresh;
    struct cell_columns to = cell_columns_add(c, names);
    struct column *bucket = column_add(c, "time.bucket", COLUMN_DELTA);
    timeline_sort(t);
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct timeline_row *r = &t->rows.data[i];
        column_put(to.event, r->event);
        column_put(to.thread, r->thread);
        column_put(to.stack, (uint64_t)r->stack * 2 + r->cut);
        column_put(to.count, r->count);
        column_put(to.value, beyond_period(g->profile, r->event, r->count, r->value));
        column_put(bucket, r->bucket);
    }
}

static void put_strings(const struct page *g, struct json *j, size_t from)
{
    json_key(j, "strings");
    json_open_array(j);
    for (size_t i = from; i < g->strings.len; i++)
        json_text(j, g->strings.text[i]);
    json_end(j);
}

static void put_head(struct page *g, struct json *j, struct columns *c,
                     const struct page_mark *from)
{
    const struct timeline *t = g->whole ? &g->timeline : &g->mark.fresh;
    json_open_object(j);
    json_put_uint(j, "version", 1);
    json_put_bool(j, "delta", !g->whole);
    json_put_uint(j, "sequence", g->mark.sequence);
    json_key(j, "from");
    json_open_object(j);
    json_put_uint(j, "strings", from->strings);
    json_put_uint(j, "modules", from->modules);
    json_put_uint(j, "symbols", from->symbols);
    json_put_uint(j, "stacks", from->stacks);
    json_end(j);
    page_facts(g, j);
    page_curves(g, j, c);
    page_put_spans(g, j, c);
    if (g->whole && !g->options.live) {
        page_tables(g, j);
        if (g->options.sources)
            page_sources(g, j);
    }
    json_key(j, "buckets");
    json_open_object(j);
    json_put_uint(j, "width", t->width);
    json_put_bool(j, "cut", t->nearest != NULL);
    json_end(j);
    put_strings(g, j, from->strings);
    columns_json(c, j);
    json_end(j);
}

int page_put_document(struct json *head, const struct columns *c, page_sink *sink, page_turn *turn,
                      void *context)
{
    char first[8] = MAGIC;
    for (int i = 0; i < 4; i++)
        first[4 + i] = (char)(head->out.len >> (8 * i));
    int result = sink(context, first, sizeof first);
    if (!result)
        result = sink(context, head->out.data, head->out.len);
    if (!result)
        result = columns_write(c, false, sink, context);
    if (!result && turn)
        result = turn(context);
    return result ? result : columns_write(c, true, sink, context);
}

static int emit(struct page *g, page_sink *sink, void *context)
{
    static const struct page_mark nothing;
    const struct page_mark *from = g->whole ? &nothing : &g->mark;
    struct columns c = {.len = 0};
    struct json j;
    put_modules(g, &c, from->modules);
    put_symbols(g, &c, from->symbols);
    put_timeline(g, &c);
    size_t first = c.len;
    put_frames(g, &c);
    put_stacks(g, &c, from->stacks);
    put_cells(g, &c);
    for (size_t i = first; i < c.len; i++)
        c.all[i].later = g->turn != NULL;
    json_init(&j, NULL, NULL);
    put_head(g, &j, &c, from);
    int result = page_put_document(&j, &c, sink, g->turn, context);
    json_release(&j);
    columns_release(&c);
    return result;
}

int page_write(struct page *g, page_sink *sink, void *context)
{
    return page_write_parts(g, sink, NULL, context);
}

int page_write_parts(struct page *g, page_sink *sink, page_turn *turn, void *context)
{
    g->whole = true;
    g->turn = turn;
    int result = emit(g, sink, context);
    g->turn = NULL;
    return result;
}

static void mark_set(struct page *g)
{
    const struct profile *p = g->profile;
    struct page_mark *m = &g->mark;
    m->strings = g->strings.len;
    m->modules = p->modules.len;
    m->symbols = g->lexicon.symbols.len;
    m->stacks = p->stacks.len;
    vector_reserve(&m->cells, p->cells.len);
    m->cells.len = p->cells.len;
    for (size_t i = 0; i < p->cells.len; i++)
        m->cells.data[i] = (struct sent_cell){p->cells.data[i].count, p->cells.data[i].value};
    vector_reserve(&m->series, p->series.len);
    m->series.len = p->series.len;
    for (size_t i = 0; i < p->series.len; i++)
        m->series.data[i] = p->series.data[i].points.len;
    timeline_release(&m->fresh);
    timeline_init(&m->fresh, p, TIMELINE_ROWS);
    g->changed.len = 0;
}

int page_delta(struct page *g, page_sink *sink, void *context)
{
    g->whole = false;
    g->mark.sequence++;
    int result = emit(g, sink, context);
    mark_set(g);
    return result;
}
