/* What a trace adds up to: calls by thread and stack, and lines, as cells of the recording. */
#include <stdlib.h>

#include "base/memory.h"
#include "capture/trace_internal.h"

static uint32_t calls_event(struct traces *t)
{
    if (!t->has_calls)
        t->calls_event = writer_event(t->session->writer, "calls", UNIT_NANOSECONDS, 0);
    t->has_calls = true;
    return t->calls_event;
}

/* A node's parent stands before it. */
void trace_write_tree(struct trace_image *m, struct trace_thread *t)
{
    struct writer *w = m->all->session->writer;
    const struct trace_tree *tree = &t->tree;
    uint32_t *stack = memory_array(tree->nodes.len + 1, sizeof *stack);
    for (size_t i = 1; i < tree->nodes.len; i++) {
        const struct trace_node *n = &tree->nodes.data[i];
        stack[i] = writer_stack(w, stack[n->parent], trace_frame_of(m, n->id));
        if (n->calls || n->self)
            writer_sum(w, calls_event(m->all), t->id, stack[i], n->calls, n->self);
        m->all->calls += n->calls;
    }
    m->all->folded += tree->folded;
    free(stack);
}

enum { LINE_TIME, LINE_ALLOCATED, LINE_FREED, LINE_PEAK, LINE_RSS, LINE_RSS_FREED };

static void declare_lines(struct traces *t)
{
    static const struct {
        const char *name;
        enum value_unit unit;
    } events[] = {{"line", UNIT_NANOSECONDS}, {"line:allocated", UNIT_BYTES},
                  {"line:freed", UNIT_BYTES}, {"line:peak", UNIT_BYTES},
                  {"line:rss", UNIT_BYTES},   {"line:rss-freed", UNIT_BYTES}};
    for (size_t i = 0; !t->has_lines && i < sizeof events / sizeof *events; i++)
        t->line_event[i] = writer_event(t->session->writer, events[i].name, events[i].unit, 0);
    t->has_lines = true;
}

static void write_line(struct trace_image *m, const struct trace_line *l, uint32_t frame)
{
    struct traces *t = m->all;
    struct writer *w = t->session->writer;
    double rate = m->clock == TRACE_TSC ? t->clock.rate : 1.0;
    uint32_t stack = writer_stack(w, 0, frame);
    writer_sum(w, t->line_event[LINE_TIME], m->main, stack, l->hits,
               (uint64_t)((double)l->ticks * rate));
    if (l->allocated || l->allocations)
        writer_sum(w, t->line_event[LINE_ALLOCATED], m->main, stack, l->allocations, l->allocated);
    if (l->freed)
        writer_sum(w, t->line_event[LINE_FREED], m->main, stack, 1, l->freed);
    if (l->peak)
        writer_sum(w, t->line_event[LINE_PEAK], m->main, stack, 1, l->peak);
    if (l->rss)
        writer_sum(w, t->line_event[LINE_RSS], m->main, stack, 1, l->rss);
    if (l->rss_freed)
        writer_sum(w, t->line_event[LINE_RSS_FREED], m->main, stack, 1, l->rss_freed);
}

void trace_write_lines(struct trace_image *m)
{
    struct writer *w = m->all->session->writer;
    const struct trace_line *lines = (const struct trace_line *)(m->base + m->layout.lines);
    for (size_t i = 0; i < m->line_sets.len; i++) {
        const struct trace_lines *set = &m->line_sets.data[i];
        const struct trace_function *f = trace_function_of(m, set->id);
        if (!f->known || f->kind != TRACE_NAME_PYTHON)
            continue;
        declare_lines(m->all);
        for (uint32_t k = 0; k < set->count; k++) {
            struct trace_line l = lines[set->first + k];
            if (l.hits || l.ticks)
                write_line(m, &l,
                           writer_frame_named(w, f->module, f->function, (uint32_t)set->line + k));
        }
    }
}
