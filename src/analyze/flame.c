/* A flame graph's boxes from a tree: a walk in order, without recursion; see flame.h. */
#include "analyze/flame.h"

#include <stdlib.h>

#include "base/memory.h"

static uint32_t tree_size(const struct tree *t, uint32_t node)
{
    uint32_t count = 1, at = t->nodes.data[node].first_child;
    while (at != TREE_NONE && at != node) {
        count++;
        if (t->nodes.data[at].first_child != TREE_NONE) {
            at = t->nodes.data[at].first_child;
            continue;
        }
        while (at != node && t->nodes.data[at].next == TREE_NONE)
            at = t->nodes.data[at].parent;
        if (at != node)
            at = t->nodes.data[at].next;
    }
    return count;
}

static void box_add(struct flame *f, const struct tree_node *n, uint64_t start)
{
    *vector_push(&f->boxes) = (struct flame_box){.symbol = n->symbol,
                                                 .node = (uint32_t)(n - f->tree->nodes.data),
                                                 .depth = n->depth,
                                                 .line = n->line,
                                                 .inlined = n->inlined,
                                                 .start = start,
                                                 .width = n->total,
                                                 .self = n->self,
                                                 .total = n->total,
                                                 .self_count = n->self_count,
                                                 .total_count = n->total_count};
    if (n->depth > f->depth)
        f->depth = n->depth;
}

void flame_from_tree(struct flame *f, struct tree *t, double min_percent)
{
    const struct tree_node *nodes = t->nodes.data;
    *f = (struct flame){.tree = t, .extent = nodes[0].total};
    double least = (double)f->extent * min_percent / 100;
    /* Where the next box of each level starts. */
    uint64_t *at = memory_array((size_t)t->depth + 2, sizeof *at);
    uint32_t node = 0;
    for (;;) {
        const struct tree_node *n = &nodes[node];
        uint64_t start = at[n->depth];
        bool keep = node == 0 || (n->total > 0 && (double)n->total >= least);
        at[n->depth] += n->total;
        at[n->depth + 1] = start;
        if (keep)
            box_add(f, n, start);
        else
            f->pruned += tree_size(t, node);
        if (keep && n->first_child != TREE_NONE) {
            node = n->first_child;
            continue;
        }
        while (node && nodes[node].next == TREE_NONE)
            node = nodes[node].parent;
        if (!node)
            break;
        node = nodes[node].next;
    }
    free(at);
}

void flame_release(struct flame *f)
{
    vector_release(&f->boxes);
}
