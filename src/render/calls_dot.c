/* See calls_dot.h. */
#include "render/calls_dot.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"

/* Names are a target's: as text of the picture, never as markup or as words of the language. */
static void add_quoted(struct text *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_add_char(out, '\\');
        text_add_char(out, (unsigned char)*s < 0x20 ? ' ' : *s);
    }
}

static double share(const struct calls *c, uint64_t time)
{
    return c->time ? 100.0 * (double)time / (double)c->time : 0;
}

static void add_count(struct text *out, const struct calls_sum *s)
{
    text_add_count(out, s->calls);
    if (s->primitive != s->calls) {
        text_add_char(out, '/');
        text_add_count(out, s->primitive);
    }
    text_add(out, s->calls == 1 ? " call" : " calls");
}

static void add_node(const struct calls *c, const struct profile *p, uint32_t i, struct text *out)
{
    const struct calls_function *f = &c->functions.data[i];
    struct text name = TEXT_INIT;
    calls_name(p, f, &name);
    double own = share(c, f->sum.self);
    text_format(out, "  n%" PRIu32 " [label=\"", i);
    add_quoted(out, name.data);
    text_add(out, "\\n");
    add_count(out, &f->sum);
    text_add(out, "\\n");
    text_add_duration(out, f->sum.total);
    text_add(out, ", itself ");
    text_add_duration(out, f->sum.self);
    text_format(out, "\", fontsize=%.1f, fillcolor=\"0.05 %.2f 1\"];\n", 9 + own / 8,
                0.04 + own / 120);
    text_release(&name);
}

static void add_edge(const struct calls *c, const struct calls_edge *e, struct text *out)
{
    text_format(out, "  n%" PRIu32 " -> n%" PRIu32 " [label=\" ", e->caller, e->callee);
    text_add_count(out, e->sum.calls);
    text_format(out, "\", penwidth=%.2f];\n", 0.5 + share(c, e->sum.total) / 25);
}

void calls_dot(const struct calls *c, const struct profile *p, const char *title, double min,
               struct text *out)
{
    bool *shown = memory_array(c->functions.len + 1, sizeof *shown);
    text_add(out, "digraph sonde {\n  label=\"");
    add_quoted(out, title);
    text_add(out, "\";\n  labelloc=t;\n  fontname=\"sans-serif\";\n"
                  "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                  "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (uint32_t i = 0; i < c->functions.len; i++) {
        shown[i] = share(c, c->functions.data[i].sum.total) >= min;
        if (shown[i])
            add_node(c, p, i, out);
    }
    for (size_t i = 0; i < c->edges.len; i++)
        if (shown[c->edges.data[i].caller] && shown[c->edges.data[i].callee])
            add_edge(c, &c->edges.data[i], out);
    text_add(out, "}\n");
    free(shown);
}
