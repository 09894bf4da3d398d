/* `report --calls`: traced calls in the columns that users of Python's profilers know. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/calls.h"
#include "analyze/report_internal.h"
#include "base/memory.h"

enum {
    NCALLS,
    TOTTIME,
    PER_CALL,
    CUMTIME,
    PER_PRIMITIVE,
    PLACE,
    CALLS,
    PRIMITIVE,
    NAME,
    FILE_PATH,
    LINE
};
#define COLUMNS (LINE + 1)

struct row {
    const struct calls_function *function;
    char *name;
    enum report_sort sort;
};

static uint64_t weight(const struct row *r)
{
    const struct calls_sum *s = &r->function->sum;
    return r->sort == REPORT_BY_TOTAL     ? s->total
           : r->sort == REPORT_BY_SAMPLES ? s->calls
                                          : s->self;
}

static int compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    uint64_t x = weight(a), y = weight(b);
    if (a->sort != REPORT_BY_NAME && x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

static struct view_section *add_table(struct view *v)
{
    const struct view_column columns[COLUMNS] = {
        [NCALLS] = {"ncalls", "ncalls", VIEW_TEXT},
        [TOTTIME] = {"tottime", "tottime", VIEW_DURATION},
        [PER_CALL] = {"percall", "percall", VIEW_DURATION},
        [CUMTIME] = {"cumtime", "cumtime", VIEW_DURATION},
        [PER_PRIMITIVE] = {"percall_cumulative", "percall", VIEW_DURATION},
        [PLACE] = {"place", "filename:lineno(function)", VIEW_TEXT, .fill = true},
        [CALLS] = {"calls", "calls", VIEW_COUNT, VIEW_MACHINES},
        [PRIMITIVE] = {"primitive", "primitive", VIEW_COUNT, VIEW_MACHINES},
        [NAME] = {"function", "function", VIEW_TEXT, VIEW_MACHINES},
        [FILE_PATH] = {"file", "file", VIEW_TEXT, VIEW_MACHINES},
        [LINE] = {"line", "line", VIEW_NUMBER, VIEW_MACHINES},
    };
    return view_add_table(v, "calls", "", columns, COLUMNS);
}

static uint64_t each(uint64_t time, uint64_t count)
{
    return count ? (time + count / 2) / count : 0;
}

static void put_row(struct view_section *s, const struct profile *p, const struct row *r)
{
    const struct calls_sum *c = &r->function->sum;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    char ncalls[64];
    if (c->primitive != c->calls)
        snprintf(ncalls, sizeof ncalls, "%" PRIu64 "/%" PRIu64, c->calls, c->primitive);
    else
        snprintf(ncalls, sizeof ncalls, "%" PRIu64, c->calls);
    row[NCALLS] = view_text(s, ncalls);
    row[TOTTIME] = view_number(c->self);
    row[PER_CALL] = view_number(each(c->self, c->calls));
    row[CUMTIME] = view_number(c->total);
    row[PER_PRIMITIVE] = view_number(each(c->total, c->primitive));
    row[PLACE] = view_text(s, r->name);
    row[CALLS] = view_number(c->calls);
    row[PRIMITIVE] = view_number(c->primitive);
    row[NAME] = view_text(s, r->name);
    if (r->function->function == PROFILE_NONE)
        return;
    const struct profile_function *f = &p->functions.data[r->function->function];
    row[NAME] = view_text(s, profile_text(p, f->name));
    row[FILE_PATH] = view_text(s, profile_text(p, f->file));
    row[LINE] = view_number(f->start_line);
}

static void add_totals(struct view *v, const struct calls *c)
{
    struct view_section *s = view_add(v, VIEW_FACTS, "calls_total", "");
    struct view_fact *f =
        view_fact(s, "calls", "calls", "calls", VIEW_COUNT, view_number(c->count));
    f->after = " function calls";
    if (c->primitive != c->count) {
        f = view_fact(s, "calls", "primitive", "primitive", VIEW_COUNT, view_number(c->primitive));
        f->before = " (";
        f->after = " primitive)";
        f->glued = true;
    }
    f = view_fact(s, "calls", "time", "time", VIEW_DURATION, view_number(c->time));
    f->before = " in ";
    f->glued = true;
}

void report_calls(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    struct calls calls;
    calls_init(&calls, r->selection);
    view_init(v, "calls", "traced calls", "calls");
    add_totals(v, &calls);
    struct view_section *s = add_table(v);
    struct row *rows = memory_array(calls.functions.len + 1, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < calls.functions.len; i++) {
        struct text name = TEXT_INIT;
        calls_name(p, &calls.functions.data[i], &name);
        rows[count++] = (struct row){&calls.functions.data[i], text_take(&name), r->sort};
    }
    qsort(rows, count, sizeof *rows, compare);
    size_t shown = report_shown(r, count);
    for (size_t i = 0; i < shown; i++)
        put_row(s, p, &rows[i]);
    s->omitted = count - shown;
    for (size_t i = 0; i < count; i++)
        free(rows[i].name);
    free(rows);
    calls_release(&calls);
    section_notes(v, r, 10);
}
