/*
 * Adding stacks up to a graph of calls; see call_graph.h. Stacks make a tree of places, each with
 * what all on top of it sum up to; a walk through the tree adds that to every function and call
 * which is not on the path already, so each stack is counted once in each and no stack is gone
 * along twice.
 */
#include "formats/call_graph.h"

#include <stdlib.h>

#include "formats/pairs.h"
#include "formats/thread_sums.h"

struct sum {
    uint64_t value, count;
};

struct adder {
    struct call_graph *g;
    struct pairs tree;        /* parent, place; number 0 is the root */
    struct pairs edges;       /* place that calls, node that is called */
    VECTOR(uint32_t) node_of; /* by place: its function's node, plus one */
    struct map node_index;
    struct sum *sums;          /* by number in the tree: its own, then all on top of it */
    uint32_t *child, *sibling; /* in the tree; 0: none */
};

static uint32_t find_node(struct adder *a, uint32_t place)
{
    struct call_graph *g = a->g;
    const struct place *at = &g->places.items.data[place];
    bool named = at->function != PROFILE_NONE, added;
    uint64_t *id =
        map_put(&a->node_index, named ? at->function : at->frame, named, g->nodes.len, &added);
    uint32_t node = (uint32_t)*id;
    if (added)
        *vector_push(&g->nodes) = (struct call_node){.place = place};
    return node;
}

static uint32_t node_of(struct adder *a, uint32_t place)
{
    while (a->node_of.len <= place)
        *vector_push(&a->node_of) = 0;
    if (!a->node_of.data[place])
        a->node_of.data[place] = find_node(a, place) + 1;
    return a->node_of.data[place] - 1;
}

static struct call_edge *edge_of(struct adder *a, uint32_t place, uint32_t to)
{
    struct call_graph *g = a->g;
    uint32_t edge = pairs_add(&a->edges, place, to);
    if (edge == g->edges.len)
        *vector_push(&g->edges) = (struct call_edge){
            .from = node_of(a, place), .line = g->places.items.data[place].line, .to = to};
    return &g->edges.data[edge];
}

static uint32_t add_frame(struct adder *a, uint32_t at, uint32_t frame)
{
    uint32_t k = a->g->p->frames.data[frame].location_count;
    do
        at = pairs_add(&a->tree, at, places_find(&a->g->places, frame, k ? k - 1 : 0));
    while (k && --k);
    return at;
}

/* Stacks stand after their parents. */
static uint32_t *make_tree(struct adder *a)
{
    const struct profile *p = a->g->p;
    uint32_t *of_stack = memory_array(p->stacks.len + 1, sizeof *of_stack);
    pairs_add(&a->tree, 0, UINT32_MAX);
    for (size_t i = 1; i < p->stacks.len; i++)
        of_stack[i] = add_frame(a, of_stack[p->stacks.data[i].parent], p->stacks.data[i].frame);
    pairs_seal(&a->tree);
    a->sums = memory_array(a->tree.items.len, sizeof *a->sums);
    return of_stack;
}

static int sum_up(struct adder *a, uint32_t event, enum weight weight, struct error *err)
{
    const struct profile *p = a->g->p;
    struct thread_sums values;
    uint32_t *of_stack = make_tree(a);
    thread_sums_init(&values, p, event);
    for (uint32_t t = 0; t < p->threads.len; t++) {
        thread_sums_take(&values, t);
        for (size_t i = 0; i < values.items.len; i++) {
            const struct profile_cell *c = &values.items.data[i];
            struct sum *at = &a->sums[of_stack[c->stack]];
            at->value += format_weight(p, c, weight);
            at->count += c->count;
        }
    }
    free(of_stack);
    return thread_sums_release(&values, err);
}

/* Before sums go down to the callers. */
static void add_own(struct adder *a)
{
    for (uint32_t i = 1; i < a->tree.items.len; i++) {
        uint32_t place = a->tree.items.data[i].b;
        if (!a->sums[i].value && !a->sums[i].count)
            continue;
        uint32_t node = node_of(a, place);
        a->g->nodes.data[node].self += a->sums[i].value;
        struct call_edge *own = edge_of(a, place, PROFILE_NONE);
        own->value += a->sums[i].value;
        own->count += a->sums[i].count;
    }
}

/* Sums go down, and the tree is linked but for what has none. */
static void link_tree(struct adder *a)
{
    uint32_t n = (uint32_t)a->tree.items.len;
    a->child = memory_array(n, sizeof *a->child);
    a->sibling = memory_array(n, sizeof *a->sibling);
    for (uint32_t i = n; --i > 0;) {
        uint32_t parent = a->tree.items.data[i].a;
        if (!a->sums[i].value && !a->sums[i].count)
            continue;
        a->sums[parent].value += a->sums[i].value;
        a->sums[parent].count += a->sums[i].count;
        a->sibling[i] = a->child[parent];
        a->child[parent] = i;
    }
}

static void enter(struct adder *a, uint32_t at)
{
    struct pair here = a->tree.items.data[at];
    uint32_t node = node_of(a, here.b);
    if (!a->g->nodes.data[node].open++)
        a->g->nodes.data[node].total += a->sums[at].value;
    if (!here.a)
        return;
    struct call_edge *e = edge_of(a, a->tree.items.data[here.a].b, node);
    if (e->open++)
        return;
    e->value += a->sums[at].value;
    e->count += a->sums[at].count;
}

static void leave(struct adder *a, uint32_t at)
{
    struct pair here = a->tree.items.data[at];
    uint32_t node = node_of(a, here.b);
    a->g->nodes.data[node].open--;
    if (here.a)
        edge_of(a, a->tree.items.data[here.a].b, node)->open--;
}

static void add_totals(struct adder *a)
{
    uint32_t at = a->child[0];
    while (at) {
        enter(a, at);
        if (a->child[at]) {
            at = a->child[at];
            continue;
        }
        leave(a, at);
        while (at && !a->sibling[at]) {
            at = a->tree.items.data[at].a;
            if (at)
                leave(a, at);
        }
        at = at ? a->sibling[at] : 0;
    }
}

int call_graph_init(struct call_graph *g, const struct profile *p, uint32_t event,
                    enum weight weight, struct error *err)
{
    struct adder a = {.g = g};
    *g = (struct call_graph){.p = p};
    places_init(&g->places, p);
    int rc = sum_up(&a, event, weight, err);
    add_own(&a);
    link_tree(&a);
    g->total = a.sums[0].value;
    add_totals(&a);
    pairs_release(&a.tree);
    pairs_release(&a.edges);
    vector_release(&a.node_of);
    map_release(&a.node_index);
    free(a.sums);
    free(a.child);
    free(a.sibling);
    return rc;
}

void call_graph_release(struct call_graph *g)
{
    places_release(&g->places);
    vector_release(&g->nodes);
    vector_release(&g->edges);
}
