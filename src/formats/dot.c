/* The graph of calls as Graphviz draws it: functions as boxes, calls as arrows. */
#include <stdlib.h>

#include "formats/call_graph.h"

#define MIN_DEFAULT 0.5 /* per cent */

static void add_quoted(struct text *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_add_char(out, '\\');
        text_add_char(out, *s);
    }
}

static void add_value(struct text *out, uint64_t value, enum value_unit unit)
{
    if (unit == UNIT_NANOSECONDS)
        text_add_duration(out, value);
    else if (unit == UNIT_BYTES)
        text_add_bytes(out, value);
    else
        text_add_count(out, value);
}

static double share(const struct call_graph *g, uint64_t value)
{
    return g->total ? 100.0 * (double)value / (double)g->total : 0;
}

static void write_node(const struct call_graph *g, uint32_t i, enum value_unit unit,
                       struct sink *out)
{
    const struct call_node *n = &g->nodes.data[i];
    struct text name = TEXT_INIT, label = TEXT_INIT;
    places_name(&g->places, n->place, &name);
    add_quoted(&label, name.data);
    text_add(&label, "\\n");
    add_value(&label, n->self, unit);
    text_format(&label, " (%.1f%%)", share(g, n->self));
    if (n->total != n->self) {
        text_add(&label, "\\nof ");
        add_value(&label, n->total, unit);
        text_format(&label, " (%.1f%%)", share(g, n->total));
    }
    /* Redder for more of its own, bigger likewise. */
    double own = share(g, n->self);
    sink_format(out, "  n%u [label=\"%s\", fontsize=%.1f, fillcolor=\"0.05 %.2f 1\"];\n", i,
                label.data, 8 + own / 4, 0.05 + own / 120);
    text_release(&name);
    text_release(&label);
}

/* Calls from different lines of a function are one arrow. */
static void write_edges(const struct call_graph *g, const bool *shown, double least,
                        enum value_unit unit, struct sink *out)
{
    struct map sums = {0};
    for (size_t i = 0; i < g->edges.len; i++) {
        const struct call_edge *e = &g->edges.data[i];
        if (e->to != PROFILE_NONE && shown[e->from] && shown[e->to])
            *map_put(&sums, e->from, e->to, 0, NULL) += e->value;
    }
    for (size_t i = 0; i < g->edges.len; i++) {
        const struct call_edge *e = &g->edges.data[i];
        uint64_t *sum = e->to == PROFILE_NONE ? NULL : map_get(&sums, e->from, e->to);
        if (!sum || !*sum)
            continue;
        if (share(g, *sum) >= least) {
            struct text label = TEXT_INIT;
            add_value(&label, *sum, unit);
            sink_format(out, "  n%u -> n%u [label=\" %s\", penwidth=%.2f];\n", e->from, e->to,
                        label.data, 0.5 + share(g, *sum) / 25);
            text_release(&label);
        }
        *sum = 0;
    }
    map_release(&sums);
}

static int dot_write(const struct profile *p, const struct export_options *options,
                     struct sink *out, struct error *err)
{
    struct call_graph g;
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    double least = options->min > 0 ? options->min : MIN_DEFAULT;
    bool values = options->weight != WEIGHT_SAMPLES;
    enum value_unit unit = values ? p->events.data[event].unit : UNIT_COUNT;
    int rc = call_graph_init(&g, p, event, values ? WEIGHT_VALUE : WEIGHT_SAMPLES, err);
    bool *shown = memory_array(g.nodes.len + 1, sizeof *shown);
    sink_text(out, "digraph sonde {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                   "  edge [fontname=\"sans-serif\", fontsize=8];\n");
    for (uint32_t i = 0; i < g.nodes.len; i++) {
        shown[i] = share(&g, g.nodes.data[i].total) >= least;
        if (shown[i])
            write_node(&g, i, unit, out);
    }
    write_edges(&g, shown, least, unit, out);
    sink_text(out, "}\n");
    free(shown);
    call_graph_release(&g);
    return rc;
}

static const char *const extensions[] = {".dot", ".gv", NULL};

const struct format format_dot = {
    .name = "dot",
    .description = "the graph of calls, for Graphviz",
    .extensions = extensions,
    .write = dot_write,
};
