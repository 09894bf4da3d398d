/*
 * The graph of calls in callgrind's format, for KCachegrind and callgrind_annotate. A
 * sampled profile knows no numbers of calls: `calls=` gives samples in their place.
 */
#include <stdlib.h>

#include "formats/call_graph.h"
#include "formats/callgrind_read.h"

struct callgrind_writer {
    const struct call_graph *g;
    struct sink *out;
    struct names files, functions; /* written before: later ones are numbers */
};

/* "key=(3) name" the first time, "key=(3)" after that; `label` has no line ends. */
static void write_name(struct callgrind_writer *w, struct names *known, const char *key,
                       const char *label)
{
    size_t before = known->len;
    uint32_t id = names_add(known, label);
    if (known->len > before)
        sink_format(w->out, "%s=(%u) %s\n", key, id + 1, label);
    else
        sink_format(w->out, "%s=(%u)\n", key, id + 1);
}

/* Functions of equal name in different files or modules must stay apart: by their module. */
static void write_function(struct callgrind_writer *w, uint32_t node, bool called)
{
    uint32_t place = w->g->nodes.data[node].place;
    const struct places *s = &w->g->places;
    struct text name = TEXT_INIT, file = TEXT_INIT;
    places_name(s, place, &name);
    text_add_printable(&file, places_file(s, place));
    const struct profile_frame *f = &s->p->frames.data[s->items.data[place].frame];
    struct text object = TEXT_INIT;
    text_add_printable(&object, profile_module_name(s->p, f->module));
    sink_format(w->out, "%s=%s\n", called ? "cob" : "ob", object.data);
    write_name(w, &w->files, called ? "cfi" : "fl", file.len ? file.data : "???");
    write_name(w, &w->functions, called ? "cfn" : "fn", name.data);
    text_release(&name);
    text_release(&file);
    text_release(&object);
}

static int compare_edges(const void *a, const void *b)
{
    const struct call_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->to > y->to ? -1 : x->to < y->to; /* the line's own value first */
}

static uint32_t start_line(const struct call_graph *g, uint32_t node)
{
    uint32_t function = g->places.items.data[g->nodes.data[node].place].function;
    return function == PROFILE_NONE ? 0 : g->p->functions.data[function].start_line;
}

static void write_calls(struct callgrind_writer *w)
{
    const struct call_graph *g = w->g;
    for (size_t i = 0; i < g->edges.len && !sink_failed(w->out); i++) {
        const struct call_edge *e = &g->edges.data[i];
        if (!i || e->from != g->edges.data[i - 1].from) {
            sink_text(w->out, "\n");
            write_function(w, e->from, false);
        }
        if (e->to != PROFILE_NONE) {
            write_function(w, e->to, true);
            sink_format(w->out, "calls=%llu %u\n", (unsigned long long)e->count,
                        start_line(g, e->to));
        }
        sink_format(w->out, "%u %llu\n", e->line, (unsigned long long)e->value);
    }
}

/* Samples without a stack are in no function, but in the total. */
static void write_stackless(struct callgrind_writer *w)
{
    uint64_t left = w->g->total;
    for (size_t i = 0; i < w->g->nodes.len; i++)
        left -= w->g->nodes.data[i].self;
    if (left)
        sink_format(w->out, "\nob=???\nfl=???\nfn=[no stack]\n0 %llu\n", (unsigned long long)left);
}

static const char *event_label(const struct profile *p, uint32_t event)
{
    enum value_unit unit = p->events.data[event].unit;
    return unit == UNIT_NANOSECONDS ? "ns" : unit == UNIT_BYTES ? "bytes" : "count";
}

static int callgrind_write(const struct profile *p, const struct export_options *options,
                           struct sink *out, struct error *err)
{
    struct call_graph g;
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    bool samples = options->weight == WEIGHT_SAMPLES;
    int rc = call_graph_init(&g, p, event, samples ? WEIGHT_SAMPLES : WEIGHT_VALUE, err);
    struct callgrind_writer w = {.g = &g, .out = out};
    struct text command = TEXT_INIT;
    text_add_printable(&command, p->processes.len ? profile_process_name(p, 0) : "?");
    sink_format(out, "# callgrind format\nversion: 1\ncreator: sonde\ncmd: %s\n", command.data);
    sink_text(out, "positions: line\n");
    sink_format(out, "event: %s : %s\n", samples ? "samples" : event_label(p, event),
                samples ? "Samples" : "Value");
    sink_format(out, "events: %s\n", samples ? "samples" : event_label(p, event));
    sink_format(out, "summary: %llu\n", (unsigned long long)g.total);
    if (g.edges.len)
        qsort(g.edges.data, g.edges.len, sizeof *g.edges.data, compare_edges);
    write_calls(&w);
    write_stackless(&w);
    sink_format(out, "\ntotals: %llu\n", (unsigned long long)g.total);
    text_release(&command);
    names_release(&w.files);
    names_release(&w.functions);
    call_graph_release(&g);
    return rc;
}

static const char *const extensions[] = {".callgrind", NULL};

const struct format format_callgrind = {
    .name = "callgrind",
    .description = "callgrind's format, for KCachegrind and callgrind_annotate",
    .extensions = extensions,
    .detect = callgrind_detect,
    .read = callgrind_read,
    .write = callgrind_write,
};
