/* The columns of a simulated run; see model.h. */
#include "analyze/model.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 3

static const struct {
    const char *name; /* perf's */
    const char *parts[PARTS_MAX];
} columns[] = {
    {"instructions", {"Ir"}},
    {"branches", {"Bc", "Bi"}},
    {"branch-misses", {"Bcm", "Bim"}},
    {"L1-dcache-loads", {"Dr"}},
    {"L1-dcache-load-misses", {"D1mr"}},
    {"L1-dcache-stores", {"Dw"}},
    {"L1-dcache-store-misses", {"D1mw"}},
    {"L1-icache-loads", {"Ir"}},
    {"L1-icache-load-misses", {"I1mr"}},
    {"LLC-loads", {"I1mr", "D1mr"}},
    {"LLC-load-misses", {"ILmr", "DLmr"}},
    {"LLC-stores", {"D1mw"}},
    {"LLC-store-misses", {"DLmw"}},
    {"cache-references", {"I1mr", "D1mr", "D1mw"}},
    {"cache-misses", {"ILmr", "DLmr", "DLmw"}},
};
#define COLUMNS (sizeof columns / sizeof *columns)

void model_translate(struct profile *p)
{
    size_t cells = p->cells.len;
    for (size_t c = 0; c < COLUMNS; c++) {
        uint32_t event = PROFILE_NONE;
        for (size_t k = 0; k < PARTS_MAX && columns[c].parts[k]; k++) {
            uint32_t part = profile_event_find(p, columns[c].parts[k]);
            if (part == PROFILE_NONE)
                continue;
            if (event == PROFILE_NONE)
                event = profile_event_add(p, columns[c].name, UNIT_COUNT, 0);
            for (size_t i = 0; i < cells; i++) {
                struct profile_cell cell = p->cells.data[i];
                if (cell.event == part && cell.value)
                    profile_count(p, event, cell.thread, cell.stack, cell.count, cell.value);
            }
        }
    }
}

void model_counts(const struct profile *p, struct counts *c, const struct counts_usage *usage)
{
    bool all = !c->events.len;
    for (size_t i = 0; all && i < COLUMNS; i++)
        if (profile_event_find(p, columns[i].name) != PROFILE_NONE)
            counts_add_event(c, columns[i].name, columns[i].name);
    struct counts_value *values = counts_values(c);
    for (size_t i = 0; i < c->events.len; i++) {
        struct counts_event *e = &c->events.data[i];
        uint32_t event = profile_event_find(p, e->plain);
        e->origin = COUNTS_SIMULATED;
        e->refused = event == PROFILE_NONE ? "the model does not know it" : NULL;
        if (event != PROFILE_NONE)
            values[i] = (struct counts_value){
                .known = true, .value = (double)p->events.data[event].value, .share = 1};
    }
    *vector_push(&c->runs) = (struct counts_run){.usage = *usage, .values = values};
}

static const char *const shown[] = {"instructions",          "branch-misses",
                                    "L1-icache-load-misses", "L1-dcache-load-misses",
                                    "LLC-load-misses",       "LLC-store-misses"};
#define SHOWN (sizeof shown / sizeof *shown)

struct place {
    uint32_t function, line;
    uint64_t values[SHOWN];
};

struct places {
    struct place *data;
    size_t len, cap;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->values[0] != y->values[0])
        return x->values[0] > y->values[0] ? -1 : 1;
    return x->function != y->function ? (x->function < y->function ? -1 : 1)
                                      : (x->line < y->line ? -1 : x->line > y->line);
}

/* Sums by function, or by function and line, the largest first. */
static void add_up(const struct profile *p, bool by_line, struct places *out)
{
    struct map index = {0};
    uint32_t events[SHOWN];
    for (size_t i = 0; i < SHOWN; i++)
        events[i] = profile_event_find(p, shown[i]);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *cell = &p->cells.data[i];
        const struct profile_frame *f = &p->frames.data[p->stacks.data[cell->stack].frame];
        size_t column = 0;
        while (column < SHOWN && events[column] != cell->event)
            column++;
        if (column == SHOWN || !cell->stack || !f->location_count)
            continue;
        struct profile_location at = p->locations.data[f->first_location];
        const struct profile_function *in = &p->functions.data[at.function];
        bool added;
        /* Code of other files inside a function is a part of it, with lines of its own. */
        uint64_t *known = by_line ? map_put(&index, at.function, at.line, out->len, &added)
                                  : map_put(&index, in->name, in->module, out->len, &added);
        if (added)
            *vector_push(out) = (struct place){.function = at.function, .line = at.line};
        out->data[*known].values[column] += cell->value;
    }
    map_release(&index);
    if (out->len)
        qsort(out->data, out->len, sizeof *out->data, compare_places);
}

static void add_table(struct view *v, const struct profile *p, bool by_line, size_t top)
{
    static const struct view_column lead[] = {
        {"instructions", "instructions", VIEW_COUNT},
        {"instructions_percent", "%", VIEW_PERCENT, .bar = true},
        {"branch_misses", "branch misses", VIEW_COUNT, .from_width = 100},
        {"L1_icache_load_misses", "L1i misses", VIEW_COUNT, .from_width = 120},
        {"L1_dcache_load_misses", "L1d misses", VIEW_COUNT},
        {"LLC_load_misses", "LLC misses", VIEW_COUNT},
        {"LLC_store_misses", "LLC store misses", VIEW_COUNT, .from_width = 140},
        {"name", "name", VIEW_TEXT, .fill = true},
        {"file", "file", VIEW_TEXT, .cut = VIEW_CUT_START, .from_width = 100},
        {"line", "line", VIEW_NUMBER}};
    struct view_section *s =
        view_add_table(v, by_line ? "lines" : "functions", by_line ? "Lines" : "Functions", lead,
                       sizeof lead / sizeof *lead - !by_line);
    struct places places = {0};
    uint64_t whole = 0;
    add_up(p, by_line, &places);
    for (size_t i = 0; i < places.len; i++)
        whole += places.data[i].values[0];
    for (size_t i = 0; i < places.len && (!top || i < top); i++) {
        const struct place *at = &places.data[i];
        const struct profile_function *f = &p->functions.data[at->function];
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        row[0] = view_number(at->values[0]);
        row[1] = view_percent(at->values[0], whole);
        for (size_t k = 1; k < SHOWN; k++)
            row[k + 1] = view_number(at->values[k]);
        row[7] = view_text(s, profile_text(p, f->name));
        row[8] = view_text(s, profile_text(p, f->file));
        if (by_line)
            row[9] = view_nonzero(at->line);
    }
    s->omitted = top && places.len > top ? places.len - top : 0;
    vector_release(&places);
}

void model_places(struct view *v, const struct profile *p, size_t top)
{
    add_table(v, p, false, top);
    add_table(v, p, true, top);
}
