/* Adding stacks up to a graph of calls; see call_graph.h. */
#include "formats/call_graph.h"

static uint32_t node_of(struct call_graph *g, uint32_t place)
{
    const struct place *at = &g->places.items.data[place];
    bool named = at->function != PROFILE_NONE, added;
    uint64_t *id =
        map_put(&g->node_index, named ? at->function : at->frame, named, g->nodes.len, &added);
    uint32_t node = (uint32_t)*id;
    if (added)
        *vector_push(&g->nodes) = (struct call_node){.place = place};
    return node;
}

static struct call_edge *edge_of(struct call_graph *g, uint32_t from, uint32_t line, uint32_t to)
{
    bool added;
    uint64_t *id = map_put(&g->edge_index, (uint64_t)from << 32 | line, to, g->edges.len, &added);
    uint64_t edge = *id;
    if (added)
        *vector_push(&g->edges) = (struct call_edge){.from = from, .line = line, .to = to};
    return &g->edges.data[edge];
}

/* An edge that a recursion passes several times is counted once for the stack. */
static void add_edge(struct call_graph *g, uint32_t from, uint32_t line, uint32_t to,
                     uint64_t value, uint64_t count, uint64_t stamp)
{
    struct call_edge *e = edge_of(g, from, line, to);
    if (e->stamp == stamp)
        return;
    e->stamp = stamp;
    e->value += value;
    e->count += count;
}

static void add_cell(struct call_graph *g, const struct profile_cell *c, uint64_t value,
                     uint64_t stamp)
{
    places_path(&g->places, c->stack);
    size_t n = g->places.path.len;
    g->total += value;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = g->places.path.data[i], line = g->places.items.data[place].line;
        uint32_t node = node_of(g, place);
        uint32_t callee = i + 1 < n ? node_of(g, g->places.path.data[i + 1]) : PROFILE_NONE;
        struct call_node *at = &g->nodes.data[node];
        if (at->stamp != stamp)
            at->total += value;
        at->stamp = stamp;
        if (i + 1 == n)
            at->self += value;
        add_edge(g, node, line, callee, value, c->count, stamp);
    }
}

void call_graph_init(struct call_graph *g, const struct profile *p, uint32_t event,
                     enum weight weight)
{
    *g = (struct call_graph){.p = p};
    places_init(&g->places, p);
    for (size_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == event)
            add_cell(g, &p->cells.data[i], format_weight(p, &p->cells.data[i], weight), i + 1);
}

void call_graph_release(struct call_graph *g)
{
    places_release(&g->places);
    vector_release(&g->nodes);
    vector_release(&g->edges);
    map_release(&g->node_index);
    map_release(&g->edge_index);
}
