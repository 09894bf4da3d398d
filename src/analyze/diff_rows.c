/* How both sides of a function, line or stack become a row, and what stands above the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff_internal.h"

enum {
    BEFORE,
    AFTER,
    CHANGE,
    RELATIVE,
    TOTAL_BEFORE,
    TOTAL_AFTER,
    TOTAL_CHANGE,
    TOTAL_RELATIVE,
    POINTS,
    TOTAL_POINTS,
    SAMPLES_BEFORE,
    SAMPLES_AFTER,
};

_Static_assert(SAMPLES_AFTER + 1 == CHANGE_NAME, "the columns of numbers stand before the name");

static void put_side(struct view_section *s, const struct diff *d, int side)
{
    const struct diff_side *at = &d->side[side];
    const struct selection *x = &at->selection;
    const char *line = side ? "B" : "A";
    struct text id = TEXT_INIT;
    struct {
        const char *id, *heading;
        enum view_kind kind;
        struct view_value value;
        const char *after;
    } facts[] = {
        {"file", "file", VIEW_TEXT, view_text(s, at->file), ""},
        {"value", x->label.data, view_kind_of(x->unit), view_number(x->value), ""},
        {"event", "event", VIEW_TEXT, view_text(s, x->label.data), ""},
        {"samples", "samples", VIEW_COUNT, view_number(x->count), " samples"},
        {"duration", "duration", VIEW_DURATION, view_nonzero(at->duration), " recorded"},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        text_clear(&id);
        text_format(&id, "%s_%s", side ? "after" : "before", facts[i].id);
        struct view_fact *f =
            view_fact(s, line, id.data, facts[i].heading, facts[i].kind, facts[i].value);
        f->after = facts[i].after;
        f->glued = !strcmp(facts[i].id, "event");
        f->before = f->glued ? " of " : "";
        f->hidden = !facts[i].value.known;
    }
    text_release(&id);
}

static const char *measure_sentence(const struct diff *d)
{
    if (d->chosen)
        return "durations or totals differ, so shares of each total are compared; --per run "
               "compares what was recorded, --per second divides by the duration";
    switch (d->per) {
    case DIFF_PER_SHARE:
        return "shares of each total are compared";
    case DIFF_PER_SECOND:
        return "values per second of recording are compared";
    default:
        return "values are compared as they were recorded";
    }
}

static void put_head(struct view *v, const struct diff *d)
{
    static const char *const per[] = {"automatic", "run", "second", "share"};
    struct view_section *s = view_add(v, VIEW_FACTS, "compared", "");
    put_side(s, d, 0);
    put_side(s, d, 1);
    view_fact(s, "Per", "per", "per", VIEW_TEXT, view_text(s, per[d->per]))->hidden = true;
    s = view_add(v, VIEW_NOTES, "notes", "");
    if (d->warnings.len) {
        struct text warning = TEXT_INIT;
        text_format(&warning, "these hardly compare: %s", d->warnings.data);
        view_note(s, NOTE_WARNING, warning.data);
        text_release(&warning);
    }
    if (d->program[0]) {
        struct text same = TEXT_INIT;
        text_format(&same, "%s and %s are taken for two builds of one program", d->program[0],
                    d->program[1]);
        view_note(s, NOTE_INFO, same.data);
        text_release(&same);
    }
    view_note(s, d->chosen ? NOTE_WARNING : NOTE_INFO, measure_sentence(d));
}

struct view_section *change_table(struct view *v, const struct diff *d, const char *id,
                                  const char *title, const char *name, bool totals)
{
    enum view_kind kind =
        d->per == DIFF_PER_SHARE ? VIEW_PERCENT : view_kind_of(d->side[0].selection.unit);
    unsigned wide = totals ? 120 : VIEW_MACHINES;
    struct view_column columns[CHANGE_COLUMNS] = {
        [BEFORE] = {"self_before", "self A", kind},
        [AFTER] = {"self_after", "self B", kind},
        [CHANGE] = {"self_change", "change", kind, .change = true},
        [RELATIVE] = {"self_relative", "%", VIEW_PERCENT, .change = true},
        [TOTAL_BEFORE] = {"total_before", "total A", kind, wide},
        [TOTAL_AFTER] = {"total_after", "total B", kind, wide},
        [TOTAL_CHANGE] = {"total_change", "in total", kind, totals ? 0 : VIEW_MACHINES,
                          .change = true},
        [TOTAL_RELATIVE] = {"total_relative", "%", VIEW_PERCENT, wide, .change = true},
        [POINTS] = {"self_points", "points", VIEW_PERCENT, VIEW_MACHINES, .change = true},
        [TOTAL_POINTS] = {"total_points", "points", VIEW_PERCENT, VIEW_MACHINES, .change = true},
        [SAMPLES_BEFORE] = {"samples_before", "samples A", VIEW_COUNT, VIEW_MACHINES},
        [SAMPLES_AFTER] = {"samples_after", "samples B", VIEW_COUNT, VIEW_MACHINES},
        [CHANGE_NAME] = {"name", name, VIEW_TEXT, .cut = totals ? VIEW_CUT_MIDDLE : VIEW_CUT_START},
        [CHANGE_STATE] = {"state", "", VIEW_TEXT},
        [CHANGE_MODULE] = {"module", "module", VIEW_TEXT, 100},
        [CHANGE_FILE] = {"file", "file", VIEW_TEXT, VIEW_MACHINES},
        [CHANGE_LINE] = {"line", "line", VIEW_NUMBER, VIEW_MACHINES},
    };
    view_init(v, "diff", "", id);
    put_head(v, d);
    return view_add_table(v, id, title, columns, CHANGE_COLUMNS);
}

/* A value of one side, in the measure of the diff: per cent, or the unit. */
static double measured(const struct diff *d, int side, uint64_t value)
{
    const struct diff_side *s = &d->side[side];
    switch (d->per) {
    case DIFF_PER_SHARE:
        return 100 * (double)value / (double)s->selection.value;
    case DIFF_PER_SECOND:
        return (double)value * 1e9 / (double)s->duration;
    default:
        return (double)value;
    }
}

static void put_pair(struct view_value *row, const struct diff *d, uint64_t before, uint64_t after,
                     bool faint)
{
    double a = measured(d, 0, before), b = measured(d, 1, after);
    if (d->per == DIFF_PER_SHARE) {
        row[BEFORE] = (struct view_value){.known = true, .percent = a};
        row[AFTER] = (struct view_value){.known = true, .percent = b};
        row[CHANGE] = (struct view_value){.known = true, .percent = b - a};
    } else {
        row[BEFORE] = view_number((uint64_t)(a + 0.5));
        row[AFTER] = view_number((uint64_t)(b + 0.5));
        row[CHANGE] = view_change((int64_t)llround(b - a));
    }
    if (a > 0)
        row[RELATIVE] = (struct view_value){.known = true, .percent = 100 * (b - a) / a};
    row[CHANGE].faint = row[RELATIVE].faint = faint;
}

static struct view_value points(const struct diff *d, uint64_t before, uint64_t after, bool faint)
{
    double a = (double)before / (double)d->side[0].selection.value;
    double b = (double)after / (double)d->side[1].selection.value;
    return (struct view_value){.known = true, .faint = faint, .percent = 100 * (b - a)};
}

/* May chance have made the change of the share? */
static bool by_chance(const struct diff *d, uint64_t before, uint64_t after, struct view_value by)
{
    double noise =
        diff_noise(before, d->side[0].selection.count, after, d->side[1].selection.count);
    return fabs(by.percent) <= noise;
}

struct view_value *change_row(struct view_section *s, const struct diff *d, const struct change *at)
{
    const struct cost *a = &at->cost[0], *b = &at->cost[1];
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[POINTS] = points(d, a->self, b->self, false);
    row[TOTAL_POINTS] = points(d, a->total, b->total, false);
    bool chance = by_chance(d, a->self_count, b->self_count, row[POINTS]);
    bool chance_total = by_chance(d, a->total_count, b->total_count, row[TOTAL_POINTS]);
    put_pair(row, d, a->self, b->self, chance);
    put_pair(row + TOTAL_BEFORE, d, a->total, b->total, chance_total);
    row[SAMPLES_BEFORE] = view_number(a->self_count);
    row[SAMPLES_AFTER] = view_number(b->self_count);
    bool before = a->total_count || a->self_count, after = b->total_count || b->self_count;
    row[CHANGE_STATE] = view_text(s, !before ? "new" : !after ? "gone" : "");
    return row;
}

void change_rest(struct view_section *s, const struct diff *d, const struct changes *c,
                 size_t shown, const char *what)
{
    struct change rest = {0};
    if (shown == c->all.len)
        return;
    for (size_t i = shown; i < c->all.len; i++)
        for (int side = 0; side < 2; side++) {
            rest.cost[side].self += c->all.data[i].cost[side].self;
            rest.cost[side].self_count += c->all.data[i].cost[side].self_count;
        }
    struct text name = TEXT_INIT;
    text_add(&name, "… ");
    text_add_count(&name, c->all.len - shown);
    text_format(&name, " more %s", what);
    struct view_value *row = change_row(s, d, &rest);
    s->rows.data[s->rows.len - 1].emphasis = VIEW_REST;
    for (int i = TOTAL_BEFORE; i <= TOTAL_RELATIVE; i++)
        row[i].known = false;
    row[TOTAL_POINTS].known = row[CHANGE_STATE].known = false;
    row[CHANGE_NAME] = view_text(s, name.data);
    s->omitted = c->all.len - shown;
    text_release(&name);
}
