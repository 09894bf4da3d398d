/*
 * Callers and callees of one function: from the call tree, the ways to and from its
 * outermost calls are merged into a small tree of their own. Every sample with the function on
 * its stack counts once, so the branches add up to the function's total. Where a name stands for
 * several functions, each is a root by itself. See report.h.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/paths.h"
#include "base/memory.h"

struct focus {
    const struct tree *all;
    struct tree merged;
    bool *match;      /* by symbol */
    uint32_t *placed; /* by node of the whole tree: its node in the merged one */
};

/* "ns::f(int) const" is "ns::f" to those who type it. */
static bool same_without_parameters(const char *symbol, const char *name)
{
    size_t len = strlen(name);
    return !strncmp(symbol, name, len) && symbol[len] == '(';
}

static bool is_called(const struct tree *t, const struct tree_symbol *s, const char *name)
{
    if (s->level != TREE_CODE)
        return false;
    if (!strcmp(s->name, name) || same_without_parameters(s->name, name))
        return true;
    if (s->function == PROFILE_NONE)
        return false;
    return !strcmp(profile_text(t->profile, t->profile->functions.data[s->function].linkage), name);
}

size_t symbols_match(const struct tree *t, const char *name, bool *match)
{
    size_t count = 0;
    for (size_t i = 0; *name && i < t->symbols.len; i++)
        count += match[i] = is_called(t, &t->symbols.data[i], name);
    for (size_t i = 0; *name && !count && i < t->symbols.len; i++)
        if (t->symbols.data[i].level == TREE_CODE && strstr(t->symbols.data[i].name, name))
            match[i] = true;
    for (size_t i = 0; !count && i < t->symbols.len; i++)
        count += match[i];
    return count;
}

static void charge(struct tree_node *n, const struct tree_node *from, bool self)
{
    n->total += from->total;
    n->total_count += from->total_count;
    n->self += self ? from->self : 0;
    n->self_count += self ? from->self_count : 0;
}

/* Adds the way from `node`, which is the function, up to the root. */
static void merge_up(struct focus *f, uint32_t node, uint32_t at)
{
    const struct tree_node *nodes = f->all->nodes.data;
    charge(&f->merged.nodes.data[at], &nodes[node], true);
    for (uint32_t up = nodes[node].parent; up; up = nodes[up].parent) {
        at = tree_child(&f->merged, at, nodes[up].symbol);
        charge(&f->merged.nodes.data[at], &nodes[node], false);
    }
}

/* Adds everything below `node`, which is the function. */
static void merge_down(struct focus *f, uint32_t node, uint32_t at)
{
    const struct tree_node *nodes = f->all->nodes.data;
    charge(&f->merged.nodes.data[at], &nodes[node], true);
    f->placed[node] = at;
    for (uint32_t c = nodes[node].first_child; c != TREE_NONE;) {
        at = tree_child(&f->merged, f->placed[nodes[c].parent], nodes[c].symbol);
        charge(&f->merged.nodes.data[at], &nodes[c], true);
        f->placed[c] = at;
        if (nodes[c].first_child != TREE_NONE) {
            c = nodes[c].first_child;
            continue;
        }
        while (c != node && nodes[c].next == TREE_NONE)
            c = nodes[c].parent;
        c = c == node ? TREE_NONE : nodes[c].next;
    }
}

static bool is_outermost(const struct tree *t, uint32_t node)
{
    const struct tree_node *nodes = t->nodes.data;
    for (uint32_t up = nodes[node].parent; up; up = nodes[up].parent)
        if (nodes[up].symbol == nodes[node].symbol)
            return false;
    return true;
}

static void merge(struct focus *f, bool callers)
{
    const struct tree *t = f->all;
    f->placed = memory_array(t->nodes.len, sizeof *f->placed);
    for (uint32_t i = 1; i < t->nodes.len; i++) {
        const struct tree_node *n = &t->nodes.data[i];
        if (!f->match[n->symbol])
            continue;
        uint32_t at = tree_child(&f->merged, 0, n->symbol);
        if (!is_outermost(t, i)) {
            /* Its total is counted above; of the callees it is one itself. */
            f->merged.nodes.data[at].self += callers ? n->self : 0;
            f->merged.nodes.data[at].self_count += callers ? n->self_count : 0;
        } else if (callers) {
            merge_up(f, i, at);
        } else {
            merge_down(f, i, at);
        }
    }
    free(f->placed);
}

static int report_focus(struct view *v, const struct report *r, const char *function, bool callers,
                        struct error *err)
{
    struct focus f = {.all = r->tree};
    struct text title = TEXT_INIT;
    text_format(&title, callers ? "callers of %s" : "what %s calls", function);
    report_begin(v, r, callers ? "callers" : "callees", title.data,
                 callers ? "callers" : "callees");
    text_release(&title);
    f.match = memory_array(r->tree->symbols.len + 1, sizeof *f.match);
    if (!symbols_match(r->tree, function, f.match)) {
        free(f.match);
        return error_set(err, FAULT_MISSING, "no function \"%s\" in what is selected", function);
    }
    tree_init_empty(&f.merged, r->tree);
    merge(&f, callers);
    tree_sort(&f.merged, TREE_BY_TOTAL);
    struct view_section *s =
        callers ? path_table(v, r, "callers", "Callers") : path_table(v, r, "callees", "Callees");
    uint32_t root = f.merged.nodes.data[0].first_child;
    for (; root != TREE_NONE; root = f.merged.nodes.data[root].next) {
        path_row(s, r, &f.merged, root, 0, VIEW_STRONG);
        path_tree(s, r, &f.merged, root);
    }
    tree_release(&f.merged);
    free(f.match);
    return 0;
}

int report_callers(struct view *v, const struct report *r, const char *function, struct error *err)
{
    return report_focus(v, r, function, true, err);
}

int report_callees(struct view *v, const struct report *r, const char *function, struct error *err)
{
    return report_focus(v, r, function, false, err);
}
