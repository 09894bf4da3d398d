/*
 * Lines that were counted (`run --lines`), as line profilers show them: every line of each function
 * with hits, time and source, and what it allocated where that was recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

enum { LINE, HITS, TIME, PER_HIT, PERCENT, ALLOCATED, NET, PEAK, RSS, SOURCE, FUNCTION, FILE_PATH };
#define COLUMNS (FILE_PATH + 1)

static const char *const event_names[] = {"line",      "line:allocated", "line:freed",
                                          "line:peak", "line:rss",       "line:rss-freed"};
enum { E_TIME, E_ALLOCATED, E_FREED, E_PEAK, E_RSS, E_RSS_FREED, EVENTS };

struct counted {
    uint32_t function, line;
    uint64_t hits;
    uint64_t value[EVENTS];
};

struct table {
    const struct profile *p;
    uint32_t event[EVENTS]; /* of the profile, or PROFILE_NONE */
    bool any[EVENTS];
    struct map index;
    VECTOR(struct counted) lines;
};

bool report_lines_counted(const struct profile *p)
{
    return profile_event_find(p, event_names[E_TIME]) != PROFILE_NONE;
}

static struct counted *line_at(struct table *t, uint32_t stack)
{
    const struct profile *p = t->p;
    const struct profile_frame *f = &p->frames.data[p->stacks.data[stack].frame];
    if (!stack || !f->location_count)
        return NULL;
    const struct profile_location *at = &p->locations.data[f->first_location];
    bool added;
    uint64_t *index = map_put(&t->index, at->function, at->line, t->lines.len, &added);
    uint64_t i = *index;
    if (added)
        *vector_push(&t->lines) = (struct counted){.function = at->function, .line = at->line};
    return &t->lines.data[i];
}

/* Peaks of one line in several processes do not add up: the highest counts. */
static void add(struct counted *c, size_t event, const struct profile_cell *x)
{
    if (event == E_TIME)
        c->hits += x->count;
    if (event != E_PEAK)
        c->value[event] += x->value;
    else if (x->value > c->value[event])
        c->value[event] = x->value;
}

static int compare(const void *left, const void *right)
{
    const struct counted *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static void table_init(struct table *t, const struct selection *s)
{
    *t = (struct table){.p = s->profile};
    for (size_t i = 0; i < EVENTS; i++)
        t->event[i] = profile_event_find(t->p, event_names[i]);
    for (size_t k = 0; k < t->p->cells.len; k++) {
        const struct profile_cell *x = &t->p->cells.data[k];
        for (size_t i = 0; i < EVENTS; i++) {
            struct counted *c =
                x->event == t->event[i] && s->thread[x->thread] && (!s->stack || s->stack[x->stack])
                    ? line_at(t, x->stack)
                    : NULL;
            if (c)
                add(c, i, x);
            t->any[i] = t->any[i] || (c && x->value);
        }
    }
    if (t->lines.len)
        qsort(t->lines.data, t->lines.len, sizeof *t->lines.data, compare);
}

static void table_release(struct table *t)
{
    map_release(&t->index);
    vector_release(&t->lines);
}

static struct view_section *add_section(struct view *v, const struct table *t)
{
    bool memory = t->any[E_ALLOCATED] || t->any[E_FREED];
    bool rss = t->any[E_RSS] || t->any[E_RSS_FREED];
    const struct view_column columns[COLUMNS] = {
        [LINE] = {"line", "line", VIEW_NUMBER},
        [HITS] = {"hits", "hits", VIEW_COUNT},
        [TIME] = {"time", "time", VIEW_DURATION},
        [PER_HIT] = {"per_hit", "per hit", VIEW_DURATION, memory ? 100 : 0},
        [PERCENT] = {"time_percent", "%", VIEW_PERCENT},
        [ALLOCATED] = {"allocated", "allocated", VIEW_BYTES, memory ? 0 : VIEW_MACHINES},
        [NET] = {"net", "net", VIEW_BYTES, memory ? 0 : VIEW_MACHINES, .change = true},
        [PEAK] = {"peak", "peak", VIEW_BYTES, memory ? 0 : VIEW_MACHINES},
        [RSS] = {"rss", "rss", VIEW_BYTES, rss ? 0 : VIEW_MACHINES, .change = true},
        [SOURCE] = {"source", "source", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
        [FUNCTION] = {"function", "function", VIEW_TEXT, VIEW_MACHINES},
        [FILE_PATH] = {"file", "file", VIEW_TEXT, VIEW_MACHINES},
    };
    return view_add_table(v, "lines", "", columns, COLUMNS);
}

static void put_values(const struct table *t, struct view_value *row, const struct counted *c,
                       uint64_t whole)
{
    row[HITS] = view_number(c->hits);
    row[TIME] = view_number(c->value[E_TIME]);
    row[PER_HIT] = view_number(c->hits ? (c->value[E_TIME] + c->hits / 2) / c->hits : 0);
    row[PERCENT] = view_percent(c->value[E_TIME], whole);
    if (t->any[E_ALLOCATED] || t->any[E_FREED]) {
        row[ALLOCATED] = view_number(c->value[E_ALLOCATED]);
        row[NET] = view_change((int64_t)(c->value[E_ALLOCATED] - c->value[E_FREED]));
        row[PEAK] = view_number(c->value[E_PEAK]);
    }
    if (t->any[E_RSS] || t->any[E_RSS_FREED])
        row[RSS] = view_change((int64_t)(c->value[E_RSS] - c->value[E_RSS_FREED]));
}

static void put_line(struct view_section *s, const struct report *r, const struct table *t,
                     uint32_t function, uint32_t line, const struct counted *c, uint64_t whole)
{
    const struct profile_function *f = &t->p->functions.data[function];
    const char *file = profile_text(t->p, f->file);
    const char *source = r->source ? r->source(r->source_context, file, line) : NULL;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[LINE] = view_number(line);
    if (c)
        put_values(t, row, c, whole);
    row[SOURCE] = view_text(s, source ? source : "");
    row[FUNCTION] = view_text(s, profile_text(t->p, f->name));
    row[FILE_PATH] = view_text(s, file);
}

/* The function's own row, then its lines from the first to the last that ran. */
static void put_function(struct view_section *s, const struct report *r, const struct table *t,
                         size_t first, size_t end)
{
    uint32_t function = t->lines.data[first].function;
    const struct profile_function *f = &t->p->functions.data[function];
    struct counted sum = {0};
    for (size_t i = first; i < end; i++)
        for (size_t e = 0; e < EVENTS; e++)
            if (e == E_PEAK && t->lines.data[i].value[e] > sum.value[e])
                sum.value[e] = t->lines.data[i].value[e];
            else if (e != E_PEAK)
                sum.value[e] += t->lines.data[i].value[e];
    struct text title = TEXT_INIT;
    text_format(&title, "%s  %s:%u", profile_text(t->p, f->name), profile_text(t->p, f->file),
                f->start_line);
    struct view_value *row = view_row(s, 0, VIEW_STRONG);
    put_values(t, row, &sum, sum.value[E_TIME]);
    row[HITS].known = row[PER_HIT].known = false;
    row[SOURCE] = view_text(s, title.data);
    row[FUNCTION] = view_text(s, profile_text(t->p, f->name));
    row[FILE_PATH] = view_text(s, profile_text(t->p, f->file));
    text_release(&title);
    uint32_t line = f->start_line ? f->start_line : t->lines.data[first].line;
    for (size_t i = first; i < end; i++) {
        for (; line < t->lines.data[i].line; line++)
            put_line(s, r, t, function, line, NULL, 0);
        put_line(s, r, t, function, line++, &t->lines.data[i], sum.value[E_TIME]);
    }
}

static bool is_wanted(const struct table *t, uint32_t function, const char *name)
{
    return !name || strstr(profile_text(t->p, t->p->functions.data[function].name), name);
}

int report_counted_lines(struct view *v, const struct report *r, const char *function,
                         struct error *err)
{
    struct table t;
    size_t shown = 0;
    table_init(&t, r->selection);
    view_init(v, "lines", "counted lines", "lines");
    struct view_section *s = add_section(v, &t);
    for (size_t i = 0, end; i < t.lines.len; i = end) {
        for (end = i; end < t.lines.len && t.lines.data[end].function == t.lines.data[i].function;)
            end++;
        if (!is_wanted(&t, t.lines.data[i].function, function))
            continue;
        put_function(s, r, &t, i, end);
        shown++;
    }
    table_release(&t);
    section_notes(v, r, 10);
    if (!shown && function)
        return error_set(err, FAULT_MISSING, "no line of \"%s\" was counted", function);
    return 0;
}
