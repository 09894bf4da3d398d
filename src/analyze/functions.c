/* Functions and modules by cost; see report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

/* Where the columns that functions and modules share stand. */
enum { SELF, SELF_PERCENT, TOTAL, TOTAL_PERCENT, SAMPLES, TOTAL_SAMPLES, NAME, SHARED };

static void shared_columns(const struct report *r, struct view_column *columns)
{
    enum view_kind kind = report_kind(r);
    columns[SELF] = (struct view_column){"self", "self", kind};
    columns[SELF_PERCENT] = (struct view_column){"self_percent", "%", VIEW_PERCENT, .bar = true};
    columns[TOTAL] = (struct view_column){"total", "total", kind};
    columns[TOTAL_PERCENT] = (struct view_column){"total_percent", "%", VIEW_PERCENT};
    columns[SAMPLES] = (struct view_column){"self_samples", selection_noun(r->selection),
                                            VIEW_COUNT, report_counts(r, 120)};
    columns[TOTAL_SAMPLES] =
        (struct view_column){"total_samples", "samples below", VIEW_COUNT, VIEW_MACHINES};
}

static void put_cost(const struct report *r, struct view_value *row, const struct cost *c)
{
    row[SELF] = view_number(c->self);
    row[SELF_PERCENT] = view_percent(c->self, r->selection->value);
    row[TOTAL] = view_number(c->total);
    row[TOTAL_PERCENT] = view_percent(c->total, r->selection->value);
    row[SAMPLES] = view_number(c->self_count);
    row[TOTAL_SAMPLES] = view_number(c->total_count);
}

/* One row for all that a limit leaves out, so that the column of self adds up to the whole. */
static void put_rest(struct view_section *s, const struct report *r, const struct ranked *all,
                     size_t shown, size_t count, const char *what)
{
    if (shown == count)
        return;
    struct cost rest = {0};
    for (size_t i = shown; i < count; i++) {
        rest.self += all[i].cost.self;
        rest.self_count += all[i].cost.self_count;
    }
    struct text name = TEXT_INIT;
    text_add(&name, "… ");
    text_add_count(&name, count - shown);
    text_format(&name, " more %s", what);
    struct view_value *row = view_row(s, 0, VIEW_REST);
    put_cost(r, row, &rest);
    row[TOTAL].known = row[TOTAL_PERCENT].known = row[TOTAL_SAMPLES].known = false;
    row[NAME] = view_text(s, name.data);
    s->omitted = count - shown;
    text_release(&name);
}

/* Every symbol that cost something, ranked. The caller frees it. */
static struct ranked *rank_symbols(const struct report *r, size_t *count)
{
    const struct tree *t = r->tree;
    size_t symbols = t->symbols.len;
    uint32_t *key = memory_array(symbols + 1, sizeof *key);
    struct cost *costs = memory_array(symbols + 1, sizeof *costs);
    struct ranked *all = memory_array(symbols + 1, sizeof *all);
    for (uint32_t i = 0; i < symbols; i++)
        key[i] = t->symbols.data[i].level == TREE_CODE ? i : TREE_NONE;
    cost_by_key(t, key, costs, symbols);
    *count = 0;
    for (uint32_t i = 0; i < symbols; i++)
        if (costs[i].total_count || costs[i].total)
            all[(*count)++] =
                (struct ranked){.id = i, .name = t->symbols.data[i].name, .cost = costs[i]};
    rank(all, *count, r->sort);
    free(key);
    free(costs);
    return all;
}

static void put_function(struct view_section *s, const struct report *r, const struct ranked *at)
{
    enum { MODULE = SHARED, FILE_NAME, LINE, LINKAGE };
    const struct profile *p = r->selection->profile;
    const struct tree_symbol *symbol = &r->tree->symbols.data[at->id];
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    put_cost(r, row, &at->cost);
    row[NAME] = view_text(s, symbol->name);
    if (symbol->module != PROFILE_NONE)
        row[MODULE] = view_text(s, profile_module_name(p, symbol->module));
    if (symbol->function == PROFILE_NONE)
        return;
    const struct profile_function *f = &p->functions.data[symbol->function];
    if (f->file)
        row[FILE_NAME] = view_text(s, profile_text(p, f->file));
    row[LINE] = view_nonzero(f->start_line);
    if (f->linkage)
        row[LINKAGE] = view_text(s, profile_text(p, f->linkage));
}

void section_functions(struct view *v, const struct report *r)
{
    struct view_column columns[SHARED + 4] = {
        [NAME] = {"name", "function", VIEW_TEXT},
        {"module", "module", VIEW_TEXT},
        {"file", "file", VIEW_TEXT, VIEW_MACHINES},
        {"line", "line", VIEW_NUMBER, VIEW_MACHINES},
        {"linkage", "linkage name", VIEW_TEXT, VIEW_MACHINES},
    };
    shared_columns(r, columns);
    struct view_section *s = view_add_table(v, "functions", "Functions", columns, SHARED + 4);
    size_t count;
    struct ranked *all = rank_symbols(r, &count);
    size_t shown = report_shown(r, count);
    for (size_t i = 0; i < shown; i++)
        put_function(s, r, &all[i]);
    put_rest(s, r, all, shown, count, "functions");
    free(all);
}

void report_functions(struct view *v, const struct report *r)
{
    report_begin(v, r, "functions", "functions", "functions");
    section_functions(v, r);
}

static const char *kind_name(enum code_kind kind)
{
    static const char *const names[] = {
        [CODE_ELF] = "native", [CODE_KERNEL] = "kernel", [CODE_VDSO] = "vdso",
        [CODE_JIT] = "jit",    [CODE_PYTHON] = "python", [CODE_UNKNOWN] = "unknown",
        [CODE_SPAN] = "span",
    };
    return kind < CODE_KINDS ? names[kind] : "unknown";
}

static void put_module(struct view_section *s, const struct report *r, const struct ranked *at)
{
    enum { KIND = SHARED, PATH, BUILD_ID, NOTE };
    const struct profile *p = r->selection->profile;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    put_cost(r, row, &at->cost);
    row[NAME] = view_text(s, at->name);
    if (at->id >= p->modules.len)
        return;
    const struct profile_module *m = &p->modules.data[at->id];
    char build_id[41] = "";
    for (size_t i = 0; i < m->build_id_len; i++)
        snprintf(build_id + 2 * i, 3, "%02x", m->build_id[i]);
    row[KIND] = view_text(s, kind_name(m->kind));
    row[PATH] = view_text(s, profile_text(p, m->path));
    if (m->build_id_len)
        row[BUILD_ID] = view_text(s, build_id);
    if (m->note)
        row[NOTE] = view_text(s, profile_text(p, m->note));
}

static void section_modules(struct view *v, const struct report *r)
{
    struct view_column columns[SHARED + 4] = {
        [NAME] = {"name", "module", VIEW_TEXT}, {"kind", "kind", VIEW_TEXT},
        {"path", "path", VIEW_TEXT, 120},       {"build_id", "build id", VIEW_TEXT, VIEW_MACHINES},
        {"note", "symbols", VIEW_TEXT, 100},
    };
    shared_columns(r, columns);
    const struct profile *p = r->selection->profile;
    const struct tree *t = r->tree;
    size_t keys = p->modules.len + 1, count = 0; /* the last is for what lies in none */
    struct view_section *s = view_add_table(v, "modules", "Modules", columns, SHARED + 4);
    uint32_t *key = memory_array(t->symbols.len + 1, sizeof *key);
    struct cost *costs = memory_array(keys, sizeof *costs);
    struct ranked *all = memory_array(keys, sizeof *all);
    for (size_t i = 0; i < t->symbols.len; i++) {
        uint32_t module = t->symbols.data[i].module;
        key[i] = module < p->modules.len ? module : (uint32_t)p->modules.len;
    }
    cost_by_key(t, key, costs, keys);
    for (uint32_t i = 0; i < keys; i++)
        if (costs[i].total_count || costs[i].total)
            all[count++] =
                (struct ranked){.id = i, .name = profile_module_name(p, i), .cost = costs[i]};
    rank(all, count, r->sort);
    size_t shown = report_shown(r, count);
    for (size_t i = 0; i < shown; i++)
        put_module(s, r, &all[i]);
    put_rest(s, r, all, shown, count, "modules");
    free(key);
    free(costs);
    free(all);
}

void report_modules(struct view *v, const struct report *r)
{
    report_begin(v, r, "modules", "modules", "modules");
    section_modules(v, r);
}
