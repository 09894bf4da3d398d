/* The call tree as a table, and its hottest path; see report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/paths.h"
#include "base/memory.h"

enum { TOTAL, TOTAL_PERCENT, SELF, SELF_PERCENT, SAMPLES, NAME, MODULE, LEVEL, PLACE, COLUMNS };

struct view_section *path_table(struct view *v, const struct report *r, const char *id,
                                const char *title)
{
    enum view_kind kind = report_kind(r);
    const struct view_column columns[COLUMNS] = {
        [TOTAL] = {"total", "total", kind},
        [TOTAL_PERCENT] = {"total_percent", "%", VIEW_PERCENT, .bar = true},
        [SELF] = {"self", "self", kind},
        [SELF_PERCENT] = {"self_percent", "%", VIEW_PERCENT},
        [SAMPLES] = {"total_samples", selection_noun(r->selection), VIEW_COUNT,
                     report_counts(r, 120)},
        [NAME] = {"name", "function", VIEW_TEXT},
        [MODULE] = {"module", "module", VIEW_TEXT},
        [LEVEL] = {"kind", "kind", VIEW_TEXT, VIEW_MACHINES},
        [PLACE] = {"place", "source", VIEW_TEXT, 140, .cut = VIEW_CUT_START},
    };
    struct view_section *s = view_add_table(v, id, title, columns, COLUMNS);
    s->tree = true;
    return s;
}

static void put_values(const struct report *r, struct view_value *row, const struct cost *c)
{
    row[TOTAL] = view_number(c->total);
    row[TOTAL_PERCENT] = view_percent(c->total, r->selection->value);
    row[SELF] = view_number(c->self);
    row[SELF_PERCENT] = view_percent(c->self, r->selection->value);
    row[SAMPLES] = view_number(c->total_count);
}

void path_row(struct view_section *s, const struct report *r, const struct tree *t, uint32_t node,
              unsigned depth, enum view_emphasis emphasis)
{
    const struct tree_node *n = &t->nodes.data[node];
    const struct tree_symbol *symbol = tree_symbol(t, node);
    struct view_value *row = view_row(s, depth, emphasis);
    struct text place = TEXT_INIT;
    put_values(r, row, &(struct cost){n->self, n->total, n->self_count, n->total_count});
    row[NAME] = view_text(s, symbol->name);
    row[LEVEL] = view_text(s, symbol->level == TREE_WAIT ? "wait" : "code");
    if (symbol->module != PROFILE_NONE)
        row[MODULE] = view_text(s, profile_module_name(t->profile, symbol->module));
    tree_place(t, node, &place);
    if (place.len)
        row[PLACE] = view_text(s, place.data);
    text_release(&place);
}

void path_rest_row(struct view_section *s, const struct report *r, const struct cost *cost,
                   unsigned depth, const char *name)
{
    struct view_value *row = view_row(s, depth, VIEW_REST);
    put_values(r, row, cost);
    row[SELF].known = row[SELF_PERCENT].known = false;
    row[NAME] = view_text(s, name);
    row[LEVEL] = view_text(s, "rest");
}

static bool is_small(const struct report *r, const struct tree_node *n)
{
    return (double)n->total * 100 < r->min * (double)r->selection->value;
}

/* Gathers up the children of `parent` that are not worth a row each, if together they are. */
static void put_small(struct view_section *s, const struct report *r, const struct tree *t,
                      uint32_t parent, unsigned depth)
{
    struct cost rest = {0};
    uint64_t count = 0;
    uint32_t c = t->nodes.data[parent].first_child;
    for (; c != TREE_NONE; c = t->nodes.data[c].next) {
        const struct tree_node *n = &t->nodes.data[c];
        if (!is_small(r, n))
            continue;
        rest.total += n->total;
        rest.total_count += n->total_count;
        count++;
    }
    s->omitted += count;
    if (!count || (double)rest.total * 100 < r->min * (double)r->selection->value)
        return;
    char name[64];
    snprintf(name, sizeof name, "… %llu below %g%%", (unsigned long long)count, r->min);
    path_rest_row(s, r, &rest, depth, name);
}

/* First child that gets a row, from `c` on. */
static uint32_t first_large(const struct report *r, const struct tree *t, uint32_t c)
{
    while (c != TREE_NONE && is_small(r, &t->nodes.data[c]))
        c = t->nodes.data[c].next;
    return c;
}

void path_tree(struct view_section *s, const struct report *r, const struct tree *t, uint32_t root)
{
    uint32_t at = first_large(r, t, t->nodes.data[root].first_child);
    unsigned depth = root ? 1 : 0, base = depth;
    if (at == TREE_NONE)
        put_small(s, r, t, root, depth);
    while (at != TREE_NONE) {
        path_row(s, r, t, at, depth, VIEW_PLAIN);
        bool deeper = !r->depth || depth - base + 1 < r->depth;
        uint32_t child = deeper ? first_large(r, t, t->nodes.data[at].first_child) : TREE_NONE;
        if (child != TREE_NONE) {
            at = child;
            depth++;
            continue;
        }
        if (deeper)
            put_small(s, r, t, at, depth + 1);
        uint32_t next;
        while ((next = first_large(r, t, t->nodes.data[at].next)) == TREE_NONE) {
            at = t->nodes.data[at].parent;
            put_small(s, r, t, at, depth);
            if (at == root)
                return;
            depth--;
        }
        at = next;
    }
}

void report_tree(struct view *v, const struct report *r)
{
    report_begin(v, r, "tree", "call tree", "tree");
    struct view_section *s = path_table(v, r, "tree", "Call tree");
    if (!r->selection->waits) {
        path_tree(s, r, r->tree, 0);
        return;
    }
    struct tree t;
    tree_init(&t, r->selection, &(struct tree_options){.by_module = true, .waits = true});
    tree_sort(&t, TREE_BY_TOTAL);
    path_tree(s, r, &t, 0);
    tree_release(&t);
}

/* One step down the heaviest branch; TREE_NONE where the node itself outweighs all below it, or
 * where no branch has a hundredth of the whole. */
static uint32_t heaviest_child(const struct tree *t, uint32_t node)
{
    uint32_t best = TREE_NONE, c = t->nodes.data[node].first_child;
    for (; c != TREE_NONE; c = t->nodes.data[c].next)
        if (best == TREE_NONE || t->nodes.data[c].total > t->nodes.data[best].total)
            best = c;
    if (best == TREE_NONE || t->nodes.data[node].self > t->nodes.data[best].total ||
        t->nodes.data[best].total < t->nodes.data[0].total / 100)
        return TREE_NONE;
    return best;
}

struct step_loss {
    size_t step;
    uint64_t loss;
};

static int compare_losses(const void *left, const void *right)
{
    const struct step_loss *a = left, *b = right;
    if (a->loss != b->loss)
        return a->loss < b->loss ? 1 : -1;
    return (a->step > b->step) - (a->step < b->step);
}

/* The steps to show: the first, the last, and those after which most of the cost goes elsewhere. */
static void choose_steps(const struct tree *t, const uint32_t *path, size_t len, size_t limit,
                         bool *shown)
{
    struct step_loss *losses = memory_array(len, sizeof *losses);
    for (size_t i = 0; i + 1 < len; i++)
        losses[i] =
            (struct step_loss){i, t->nodes.data[path[i]].total - t->nodes.data[path[i + 1]].total};
    qsort(losses, len - 1, sizeof *losses, compare_losses);
    shown[0] = shown[len - 1] = true;
    size_t count = len > 1 ? 2 : 1;
    for (size_t i = 0; i + 1 < len && (!limit || count < limit); i++) {
        count += !shown[losses[i].step];
        shown[losses[i].step] = true;
    }
    free(losses);
}

void section_path(struct view *v, const struct report *r, size_t limit)
{
    const struct tree *t = r->tree;
    struct view_section *s = path_table(v, r, "hottest_path", "Hottest path");
    VECTOR(uint32_t) path = {0};
    for (uint32_t at = 0; (at = heaviest_child(t, at)) != TREE_NONE;)
        *vector_push(&path) = at;
    s->tree = false;
    if (!path.len)
        return;
    bool *shown = memory_array(path.len, sizeof *shown);
    choose_steps(t, path.data, path.len, limit, shown);
    for (size_t i = 0; i < path.len; i++) {
        if (shown[i]) {
            path_row(s, r, t, path.data[i], 0, i + 1 == path.len ? VIEW_STRONG : VIEW_PLAIN);
            continue;
        }
        size_t first = i;
        while (!shown[i + 1])
            i++;
        if (i == first) { /* a row for "1 more" is a row for the step itself */
            path_row(s, r, t, path.data[i], 0, VIEW_PLAIN);
            continue;
        }
        char name[64];
        const struct tree_node *n = &t->nodes.data[path.data[i]];
        snprintf(name, sizeof name, "… %zu more calls", i - first + 1);
        path_rest_row(s, r, &(struct cost){.total = n->total, .total_count = n->total_count}, 0,
                      name);
        s->omitted += i - first + 1;
    }
    free(shown);
    vector_release(&path);
}

void hottest_leaf(const struct tree *t, unsigned steps, struct text *out)
{
    VECTOR(uint32_t) path = {0};
    size_t user = 0; /* steps down to the last outside the kernel */
    for (uint32_t at = 0; (at = heaviest_child(t, at)) != TREE_NONE;) {
        *vector_push(&path) = at;
        if (tree_symbol(t, at)->kind != CODE_KERNEL)
            user = path.len;
    }
    size_t end = user ? user : path.len, first = end > steps ? end - steps : 0;
    for (size_t i = first; i < end; i++) {
        text_add(out, i > first ? " › " : "");
        text_add(out, tree_symbol(t, path.data[i])->name);
    }
    vector_release(&path);
}
