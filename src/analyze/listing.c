/* Source lines by cost, and the listing of one function; see report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/lines.h"
#include "base/memory.h"

#define AROUND 2   /* lines shown before the first and after the last with a cost */
#define GAP_MAX 12 /* lines without a cost shown between two with one */
#define FUNCTIONS_MAX 10

enum { SELF, SELF_PERCENT, TOTAL, TOTAL_PERCENT, SAMPLES, LINE, NAME, SOURCE, FUNCTION, PATH };
#define COLUMNS (PATH + 1)

static void put_cost(const struct report *r, struct view_value *row, const struct cost *c)
{
    row[SELF] = view_number(c->self);
    row[SELF_PERCENT] = view_percent(c->self, r->selection->value);
    row[TOTAL] = view_number(c->total);
    row[TOTAL_PERCENT] = view_percent(c->total, r->selection->value);
    row[SAMPLES] = view_number(c->self_count);
}

static struct view_section *add_table(struct view *v, const struct report *r, bool listing)
{
    enum view_kind kind = report_kind(r);
    const struct view_column columns[COLUMNS] = {
        [SELF] = {"self", "self", kind},
        [SELF_PERCENT] = {"self_percent", "%", VIEW_PERCENT, .bar = true},
        [TOTAL] = {"total", "total", kind},
        [TOTAL_PERCENT] = {"total_percent", "%", VIEW_PERCENT},
        [SAMPLES] = {"self_samples", selection_noun(r->selection), VIEW_COUNT,
                     report_counts(r, 120)},
        [LINE] = {"line", "line", VIEW_NUMBER, listing ? 0 : VIEW_MACHINES},
        [NAME] = {"place", "place", VIEW_TEXT, listing ? VIEW_MACHINES : 0},
        [SOURCE] = {"source", "source", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
        [FUNCTION] = {"function", "function", VIEW_TEXT, listing ? VIEW_MACHINES : 120},
        [PATH] = {"file", "file", VIEW_TEXT, VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "lines", "Lines", columns, COLUMNS);
    s->title = arena_strdup(s->arena, listing ? "Source" : "Lines");
    return s;
}

static const char *source_line(const struct report *r, const char *file, uint32_t line)
{
    return r->source ? r->source(r->source_context, file, line) : NULL;
}

static const char *skip_spaces(const char *s)
{
    return s ? s + strspn(s, " \t") : NULL;
}

static struct view_value *put_line(struct view_section *s, const struct report *r,
                                   uint32_t function, uint32_t line, unsigned depth)
{
    const struct profile *p = r->selection->profile;
    const struct profile_function *f = &p->functions.data[function];
    const char *file = profile_text(p, f->file), *slash = strrchr(file, '/');
    struct view_value *row = view_row(s, depth, VIEW_PLAIN);
    struct text place = TEXT_INIT;
    text_format(&place, "%s:%u", slash && slash[1] ? slash + 1 : file, line);
    row[LINE] = view_number(line);
    row[NAME] = view_text(s, place.data);
    row[FUNCTION] = view_text(s, profile_text(p, f->name));
    row[PATH] = view_text(s, file);
    text_release(&place);
    return row;
}

/* What no line is known for, and what a limit left out: the column of self adds up to the whole. */
static void put_rest(struct view_section *s, const struct report *r, uint64_t self, uint64_t count,
                     const char *what)
{
    if (!count && !self)
        return;
    struct view_value *row = view_row(s, 0, VIEW_REST);
    put_cost(r, row, &(struct cost){.self = self, .self_count = count});
    row[TOTAL].known = row[TOTAL_PERCENT].known = false;
    row[NAME] = view_text(s, what);
}

static void hottest_lines(struct view *v, const struct report *r)
{
    struct view_section *s = add_table(v, r, false);
    struct lines l;
    lines_init(&l, r->selection, false);
    const struct profile *p = r->selection->profile;
    struct ranked *all = memory_array(l.lines.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < l.lines.len; i++)
        if (l.lines.data[i].cost.total_count || l.lines.data[i].cost.total)
            all[count++] = (struct ranked){
                i, profile_text(p, p->functions.data[l.lines.data[i].function].file),
                l.lines.data[i].cost};
    rank(all, count, r->sort);
    size_t shown = report_shown(r, count);
    struct cost rest = {0};
    bool any_source = false;
    for (size_t i = 0; i < count; i++) {
        const struct line *at = &l.lines.data[all[i].id];
        if (i >= shown) {
            rest.self += at->cost.self;
            rest.self_count += at->cost.self_count;
            continue;
        }
        struct view_value *row = put_line(s, r, at->function, at->number, 0);
        put_cost(r, row, &at->cost);
        const char *source = skip_spaces(source_line(r, all[i].name, at->number));
        if (source)
            row[SOURCE] = view_text(s, source);
        any_source = any_source || source;
    }
    if (!any_source)
        s->columns[FUNCTION].from_width = 0;
    char what[64];
    snprintf(what, sizeof what, "… %zu more lines", count - shown);
    put_rest(s, r, rest.self, rest.self_count, what);
    put_rest(s, r, l.self, l.self_count, "no line known");
    s->omitted = count - shown;
    free(all);
    lines_release(&l);
}

static int compare_numbers(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* A line of the listing; `cost` is NULL where there is none. */
static bool put_listed(struct view_section *s, const struct report *r, uint32_t function,
                       uint32_t number, const struct cost *cost)
{
    const struct profile *p = r->selection->profile;
    const char *file = profile_text(p, p->functions.data[function].file);
    const char *source = source_line(r, file, number);
    if (!cost && !source)
        return false;
    struct view_value *row = put_line(s, r, function, number, 1);
    if (cost)
        put_cost(r, row, cost);
    row[SOURCE] = source ? view_text(s, source) : row[NAME];
    return true;
}

/* The lines of one function in order, with those between if the source can be had. */
static void list_function(struct view_section *s, const struct report *r, uint32_t function,
                          struct line *lines, size_t count)
{
    qsort(lines, count, sizeof *lines, compare_numbers);
    uint32_t start = r->selection->profile->functions.data[function].start_line;
    uint32_t first = lines[0].number, at = first > AROUND ? first - AROUND : 1;
    if (start && start < first && first - start <= GAP_MAX)
        at = start;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].number - at > GAP_MAX)
            at = lines[i].number - AROUND;
        for (; at < lines[i].number; at++)
            put_listed(s, r, function, at, NULL);
        put_listed(s, r, function, at++, &lines[i].cost);
    }
    for (uint32_t end = at + AROUND; at < end; at++)
        if (!put_listed(s, r, function, at, NULL))
            break;
}

static void put_function(struct view_section *s, const struct report *r, const struct ranked *at,
                         const struct lines *l)
{
    const struct profile *p = r->selection->profile;
    struct line *lines = memory_array(l->lines.len + 1, sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < l->lines.len; i++)
        if (l->lines.data[i].function == at->id &&
            (l->lines.data[i].cost.total_count || l->lines.data[i].cost.total))
            lines[count++] = l->lines.data[i];
    struct text title = TEXT_INIT;
    const struct profile_function *f = &p->functions.data[at->id];
    text_format(&title, "%s", at->name);
    if (f->file)
        text_format(&title, "  %s", profile_text(p, f->file));
    struct view_value *row = view_row(s, 0, VIEW_STRONG);
    put_cost(r, row, &at->cost);
    row[SOURCE] = view_text(s, title.data);
    row[FUNCTION] = view_text(s, at->name);
    if (f->file)
        row[PATH] = view_text(s, profile_text(p, f->file));
    if (count)
        list_function(s, r, at->id, lines, count);
    text_release(&title);
    free(lines);
}

/* The functions of that name that cost something, dearest first. */
static struct ranked *chosen_functions(const struct report *r, const char *function, size_t *count,
                                       struct error *err)
{
    const struct tree *t = r->tree;
    bool *match = memory_array(t->symbols.len + 1, sizeof *match);
    struct ranked *all = NULL;
    *count = 0;
    if (!symbols_match(t, function, match)) {
        error_set(err, FAULT_MISSING, "no function \"%s\" in what is selected", function);
        free(match);
        return NULL;
    }
    uint32_t *key = memory_array(t->symbols.len + 1, sizeof *key);
    struct cost *costs = memory_array(t->symbols.len + 1, sizeof *costs);
    all = memory_array(t->symbols.len + 1, sizeof *all);
    for (uint32_t i = 0; i < t->symbols.len; i++)
        key[i] = match[i] ? i : TREE_NONE;
    cost_by_key(t, key, costs, t->symbols.len);
    for (uint32_t i = 0; i < t->symbols.len; i++)
        if (match[i] && (costs[i].total_count || costs[i].total) &&
            t->symbols.data[i].function != PROFILE_NONE)
            all[(*count)++] =
                (struct ranked){t->symbols.data[i].function, t->symbols.data[i].name, costs[i]};
    rank(all, *count, r->sort);
    free(match);
    free(key);
    free(costs);
    return all;
}

int report_lines(struct view *v, const struct report *r, const char *function, struct error *err)
{
    struct text title = TEXT_INIT;
    text_format(&title, function ? "source lines of %s" : "source lines", function);
    report_begin(v, r, "lines", title.data, "lines");
    text_release(&title);
    if (!function) {
        hottest_lines(v, r);
        return 0;
    }
    size_t count;
    struct ranked *all = chosen_functions(r, function, &count, err);
    if (!all)
        return FAULT_MISSING;
    struct view_section *s = add_table(v, r, true);
    struct lines l;
    lines_init(&l, r->selection, true);
    for (size_t i = 0; i < count && i < FUNCTIONS_MAX; i++)
        put_function(s, r, &all[i], &l);
    s->omitted = count > FUNCTIONS_MAX ? count - FUNCTIONS_MAX : 0;
    lines_release(&l);
    free(all);
    return 0;
}
