/* The tables of a diff: functions, lines and stacks, largest change first; see diff.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff_internal.h"
#include "analyze/lines.h"
#include "base/map.h"
#include "base/memory.h"

void changes_of_functions(const struct diff *d, struct changes *c)
{
    const struct tree *t = &d->side[0].tree;
    size_t symbols = t->symbols.len;
    uint32_t *key = memory_array(symbols + 1, sizeof *key);
    struct cost *costs[2];
    for (uint32_t i = 0; i < symbols; i++)
        key[i] = t->symbols.data[i].level == TREE_CODE ? d->key[i] : TREE_NONE;
    for (int i = 0; i < 2; i++) {
        costs[i] = memory_array(symbols + 1, sizeof **costs);
        cost_by_key(&d->side[i].tree, key, costs[i], symbols);
    }
    for (uint32_t i = 0; i < symbols; i++)
        if (costs[0][i].total_count || costs[1][i].total_count || costs[0][i].total ||
            costs[1][i].total)
            *vector_push(&c->all) = (struct change){
                .id = i, .name = t->symbols.data[i].name, .cost = {costs[0][i], costs[1][i]}};
    free(key);
    free(costs[0]);
    free(costs[1]);
}

struct ordering {
    const struct diff *d;
    enum diff_sort sort;
};

static double size_of(const struct ordering *by, const struct change *c, bool total)
{
    const struct diff_side *s = by->d->side;
    uint64_t before = total ? c->cost[0].total : c->cost[0].self;
    uint64_t after = total ? c->cost[1].total : c->cost[1].self;
    return fabs((double)after * s[1].scale - (double)before * s[0].scale);
}

static int compare(const void *left, const void *right, void *context)
{
    const struct ordering *by = context;
    const struct change *a = left, *b = right;
    bool total = by->sort == DIFF_BY_TOTAL;
    for (int i = 0; i < 2 && by->sort != DIFF_BY_NAME; i++, total = !total) {
        double x = size_of(by, a, total), y = size_of(by, b, total);
        if (x != y)
            return x < y ? 1 : -1;
    }
    int names = strcmp(a->name, b->name);
    return names ? names : (a->id > b->id) - (a->id < b->id);
}

void changes_sort(struct changes *c, const struct diff *d, enum diff_sort sort)
{
    struct ordering by = {d, sort};
    if (c->all.len)
        qsort_r(c->all.data, c->all.len, sizeof *c->all.data, compare, &by);
}

static size_t shown_of(const struct changes *c, uint64_t top)
{
    return top && top < c->all.len ? (size_t)top : c->all.len;
}

void diff_functions(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort)
{
    struct changes c = {0};
    changes_of_functions(d, &c);
    changes_sort(&c, d, sort);
    struct view_section *s = change_table(v, d, "functions", "Functions", "function", true);
    size_t shown = shown_of(&c, top);
    for (size_t i = 0; i < shown; i++) {
        const struct tree_symbol *symbol = &d->side[0].tree.symbols.data[c.all.data[i].id];
        struct view_value *row = change_row(s, d, &c.all.data[i]);
        row[CHANGE_NAME] = view_text(s, symbol->name);
        if (symbol->module != PROFILE_NONE)
            row[CHANGE_MODULE] = view_text(s, profile_module_name(d->profile, symbol->module));
        if (symbol->function == PROFILE_NONE)
            continue;
        const struct profile_function *f = &d->profile->functions.data[symbol->function];
        if (f->file)
            row[CHANGE_FILE] = view_text(s, profile_text(d->profile, f->file));
        row[CHANGE_LINE] = view_nonzero(f->start_line);
    }
    change_rest(s, d, &c, shown, "functions");
    vector_release(&c.all);
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A line is the same in both builds if it stands at the same place of the same function: what was
 * added above the function moves it, but does not change it. */
static uint64_t *line_find(struct map *known, struct names *names, const struct profile *p,
                           const struct line *l, uint64_t fresh, bool *added)
{
    const struct profile_function *f = &p->functions.data[l->function];
    uint32_t name = names_add(names, profile_text(p, f->name));
    uint32_t file = names_add(names, base_of(profile_text(p, f->file)));
    int64_t offset = f->start_line ? (int64_t)l->number - f->start_line : l->number;
    bool relative = f->start_line != 0;
    return map_put(known, (uint64_t)name << 32 | file, (uint64_t)offset << 1 | relative, fresh,
                   added);
}

struct line_change {
    uint32_t function, number; /* of the later side, if it has it */
};

static void add_cost(struct cost *to, const struct cost *from)
{
    to->self += from->self;
    to->total += from->total;
    to->self_count += from->self_count;
    to->total_count += from->total_count;
}

void diff_lines(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort)
{
    const struct profile *p = d->profile;
    struct changes c = {0};
    VECTOR(struct line_change) lines = {0};
    struct names names = {0};
    struct map known = {0};
    for (int side = 0; side < 2; side++) {
        struct lines l;
        lines_init(&l, &d->side[side].selection, true);
        for (size_t i = 0; i < l.lines.len; i++) {
            const struct line *at = &l.lines.data[i];
            bool added;
            if (!at->cost.total_count && !at->cost.total)
                continue;
            uint64_t id = *line_find(&known, &names, p, at, c.all.len, &added);
            if (added) {
                *vector_push(&c.all) =
                    (struct change){.id = (uint32_t)id,
                                    .name = profile_text(p, p->functions.data[at->function].name)};
                *vector_push(&lines) = (struct line_change){0};
            }
            lines.data[id] = (struct line_change){at->function, at->number};
            add_cost(&c.all.data[id].cost[side], &at->cost);
        }
        lines_release(&l);
    }
    changes_sort(&c, d, sort);
    struct view_section *s = change_table(v, d, "lines", "Lines", "line", true);
    size_t shown = shown_of(&c, top);
    struct text name = TEXT_INIT;
    for (size_t i = 0; i < shown; i++) {
        const struct line_change *at = &lines.data[c.all.data[i].id];
        const struct profile_function *f = &p->functions.data[at->function];
        const char *file = profile_text(p, f->file);
        struct view_value *row = change_row(s, d, &c.all.data[i]);
        text_clear(&name);
        text_format(&name, "%s:%" PRIu32 " %s", base_of(file), at->number,
                    profile_text(p, f->name));
        row[CHANGE_NAME] = view_text(s, name.data);
        row[CHANGE_FILE] = view_text(s, file);
        row[CHANGE_LINE] = view_number(at->number);
        if (f->module < p->modules.len)
            row[CHANGE_MODULE] = view_text(s, profile_module_name(p, f->module));
    }
    change_rest(s, d, &c, shown, "lines");
    text_release(&name);
    vector_release(&lines);
    vector_release(&c.all);
    names_release(&names);
    map_release(&known);
}

/* Puts the stacks of both sides into one tree; costs[side][node], the caller frees them. */
static void join_trees(const struct diff *d, struct tree *t, struct cost *costs[2])
{
    size_t cap = 0;
    tree_init_empty(t, &d->side[0].tree);
    for (int side = 0; side < 2; side++)
        cap += d->side[side].tree.nodes.len;
    for (int side = 0; side < 2; side++) {
        const struct tree *from = &d->side[side].tree;
        uint32_t *node = memory_array(from->nodes.len, sizeof *node);
        costs[side] = memory_array(cap + 1, sizeof **costs);
        for (uint32_t i = 0; i < from->nodes.len; i++) {
            const struct tree_node *n = &from->nodes.data[i];
            if (i)
                node[i] = tree_child(t, node[n->parent], d->key[n->symbol]);
            struct tree_node *to = &t->nodes.data[node[i]];
            to->line = !to->line || to->line == n->line ? n->line : 0;
            to->inlined = n->inlined;
            add_cost(&costs[side][node[i]],
                     &(struct cost){n->self, n->total, n->self_count, n->total_count});
        }
        free(node);
    }
}

static void add_path(const struct tree *t, uint32_t node, struct text *out)
{
    VECTOR(uint32_t) path = {0};
    for (; node; node = t->nodes.data[node].parent)
        *vector_push(&path) = node;
    text_clear(out);
    for (size_t i = path.len; i-- > 0;)
        text_format(out, "%s%s", out->len ? ";" : "", tree_symbol(t, path.data[i])->name);
    vector_release(&path);
}

void diff_stacks(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort)
{
    struct tree t;
    struct cost *costs[2];
    struct changes c = {0};
    struct text name = TEXT_INIT;
    join_trees(d, &t, costs);
    for (uint32_t i = 0; i < t.nodes.len; i++)
        if (costs[0][i].self_count || costs[1][i].self_count || costs[0][i].self ||
            costs[1][i].self)
            *vector_push(&c.all) = (struct change){
                .id = i, .name = tree_symbol(&t, i)->name, .cost = {costs[0][i], costs[1][i]}};
    changes_sort(&c, d, sort);
    struct view_section *s = change_table(v, d, "stacks", "Stacks", "stack", false);
    size_t shown = shown_of(&c, top);
    for (size_t i = 0; i < shown; i++) {
        uint32_t node = c.all.data[i].id;
        struct view_value *row = change_row(s, d, &c.all.data[i]);
        add_path(&t, node, &name);
        row[CHANGE_NAME] = view_text(s, name.len ? name.data : "[no stack]");
        uint32_t module = tree_symbol(&t, node)->module;
        if (module != PROFILE_NONE)
            row[CHANGE_MODULE] = view_text(s, profile_module_name(d->profile, module));
    }
    change_rest(s, d, &c, shown, "stacks");
    text_release(&name);
    free(costs[0]);
    free(costs[1]);
    vector_release(&c.all);
    tree_release(&t);
}

static uint64_t scaled(const struct diff *d, int side, uint64_t value)
{
    return (uint64_t)((double)value * d->side[side].scale + 0.5);
}

void diff_flame(const struct diff *d, double min_percent, struct tree *t, struct flame *f)
{
    struct cost *costs[2];
    join_trees(d, t, costs);
    for (uint32_t i = 0; i < t->nodes.len; i++) {
        struct tree_node *n = &t->nodes.data[i];
        uint64_t before = scaled(d, 0, costs[0][i].self), after = scaled(d, 1, costs[1][i].self);
        n->self = before > after ? before : after;
        n->self_count = costs[0][i].self_count + costs[1][i].self_count;
        n->total = n->total_count = 0;
    }
    for (uint32_t i = (uint32_t)t->nodes.len; i-- > 0;) {
        struct tree_node *n = &t->nodes.data[i];
        n->total += n->self;
        n->total_count += n->self_count;
        if (i) {
            t->nodes.data[n->parent].total += n->total;
            t->nodes.data[n->parent].total_count += n->total_count;
        }
    }
    tree_sort(t, TREE_BY_TOTAL);
    flame_from_tree(f, t, min_percent);
    f->compares = true;
    for (size_t i = 0; i < f->boxes.len; i++) {
        struct flame_box *box = &f->boxes.data[i];
        box->before = scaled(d, 0, costs[0][box->node].total);
        box->after = scaled(d, 1, costs[1][box->node].total);
    }
    free(costs[0]);
    free(costs[1]);
}
