/* Costs of whatever the symbols of a call tree are grouped by; see report_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

static void enter(const struct tree_node *n, uint32_t key, uint32_t *open, struct cost *costs)
{
    if (key == TREE_NONE)
        return;
    costs[key].self += n->self;
    costs[key].self_count += n->self_count;
    if (open[key]++)
        return;
    costs[key].total += n->total;
    costs[key].total_count += n->total_count;
}

void cost_by_key(const struct tree *t, const uint32_t *key, struct cost *costs, size_t keys)
{
    const struct tree_node *nodes = t->nodes.data;
    uint32_t *open = memory_array(keys + 1, sizeof *open); /* how often each is on the path */
    uint32_t at = nodes[0].first_child;
    while (at != TREE_NONE) {
        enter(&nodes[at], key[nodes[at].symbol], open, costs);
        if (nodes[at].first_child != TREE_NONE) {
            at = nodes[at].first_child;
            continue;
        }
        for (;;) {
            uint32_t k = key[nodes[at].symbol];
            if (k != TREE_NONE)
                open[k]--;
            if (nodes[at].next != TREE_NONE || !nodes[at].parent)
                break;
            at = nodes[at].parent;
        }
        at = nodes[at].next;
    }
    free(open);
}

static int compare(const void *left, const void *right, void *context)
{
    const struct ranked *a = left, *b = right;
    const struct cost *x = &a->cost, *y = &b->cost;
    uint64_t first[2] = {x->self, y->self}, second[2] = {x->total, y->total};
    switch (*(const enum report_sort *)context) {
    case REPORT_BY_SELF:
        break;
    case REPORT_BY_TOTAL:
        first[0] = x->total, first[1] = y->total;
        second[0] = x->self, second[1] = y->self;
        break;
    case REPORT_BY_SAMPLES:
        first[0] = x->self_count, first[1] = y->self_count;
        second[0] = x->total_count, second[1] = y->total_count;
        break;
    case REPORT_BY_NAME:
        first[0] = first[1] = second[0] = second[1] = 0;
        break;
    }
    if (first[0] != first[1])
        return first[0] < first[1] ? 1 : -1;
    if (second[0] != second[1])
        return second[0] < second[1] ? 1 : -1;
    int names = strcmp(a->name, b->name);
    return names ? names : (a->id > b->id) - (a->id < b->id);
}

void rank(struct ranked *all, size_t count, enum report_sort sort)
{
    if (count)
        qsort_r(all, count, sizeof *all, compare, &sort);
}
