/* Stacks by what they cost themselves, each in one row; see heap_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

#define SHORT 6 /* frames of a stack that people get to see */

enum { VALUE, PERCENT, COUNT, STACK, PLACE, WHOLE, COLUMNS };

/* Where every thread comes from: true of each stack, so no news of any. */
static bool is_start(const char *name)
{
    return text_starts(name, "__libc_start_") || !strcmp(name, "_start") ||
           !strcmp(name, "start_thread") || text_starts(name, "__clone");
}

/* "std::vector<…>::push_back" of a C++ name: no result, no parameters, nothing in <>. */
static void short_name(struct text *out, const char *name)
{
    static const char hidden[] = "(anonymous namespace)";
    size_t start = out->len;
    int depth = 0;
    if (strstr(name, "operator")) {
        text_add(out, name);
        return;
    }
    for (const char *c = name; *c && !(*c == '(' && !depth && !text_starts(c, hidden)); c++) {
        if (*c == '<' && !depth++)
            text_add(out, "<…>");
        depth -= *c == '>' && depth && c[-1] != '-';
        if (depth || *c == '>')
            continue;
        if (*c == '(') {
            text_add(out, hidden);
            c += sizeof hidden - 2;
        } else if (*c == ' ') {
            out->len = start;
            out->data[start] = 0;
        } else {
            text_add_char(out, *c);
        }
    }
    if (out->len == start)
        text_add(out, name);
}

void heap_stack_text(const struct tree *t, uint32_t node, unsigned limit, struct text *out)
{
    for (unsigned i = 0; node; node = t->nodes.data[node].parent, i++) {
        if (limit && i && is_start(tree_symbol(t, node)->name))
            return;
        text_add(out, i ? " ← " : "");
        if (limit && i == limit) {
            text_add(out, "…");
            return;
        }
        if (limit)
            short_name(out, tree_symbol(t, node)->name);
        else
            text_add(out, tree_symbol(t, node)->name);
    }
    if (!out->len)
        text_add(out, "[no stack]");
}

struct view_value heap_stack_value(struct view_section *s, const struct tree *t, uint32_t node)
{
    struct text text = TEXT_INIT;
    heap_stack_text(t, node, SHORT, &text);
    struct view_value value = view_text(s, text.data);
    text_release(&text);
    return value;
}

static void put_stack(struct view_section *s, const struct report *r, uint32_t node)
{
    const struct tree_node *n = &r->tree->nodes.data[node];
    struct text text = TEXT_INIT;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[VALUE] = view_number(n->self);
    row[PERCENT] = view_percent(n->self, r->selection->value);
    row[COUNT] = view_number(n->self_count);
    heap_stack_text(r->tree, node, SHORT, &text);
    row[STACK] = view_text(s, text.data);
    text_clear(&text);
    heap_stack_text(r->tree, node, 0, &text);
    row[WHOLE] = view_text(s, text.data);
    text_clear(&text);
    if (node)
        tree_place(r->tree, node, &text);
    if (text.len)
        row[PLACE] = view_text(s, text.data);
    text_release(&text);
}

static void put_rest(struct view_section *s, const struct report *r, const struct ranked *rest,
                     size_t count)
{
    uint64_t value = 0, blocks = 0;
    if (!count)
        return;
    for (size_t i = 0; i < count; i++) {
        value += rest[i].cost.self;
        blocks += rest[i].cost.self_count;
    }
    struct text name = TEXT_INIT;
    text_add(&name, "… ");
    text_add_count(&name, count);
    text_add(&name, report_plural(count, " more stack", " more stacks"));
    struct view_value *row = view_row(s, 0, VIEW_REST);
    row[VALUE] = view_number(value);
    row[PERCENT] = view_percent(value, r->selection->value);
    row[COUNT] = view_number(blocks);
    row[STACK] = view_text(s, name.data);
    s->omitted = count;
    text_release(&name);
}

void section_stacks(struct view *v, const struct report *r, const char *id, const char *title,
                    size_t limit)
{
    bool bytes = r->selection->unit == UNIT_BYTES;
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"value", bytes ? "bytes" : r->selection->label.data, report_kind(r)},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [COUNT] = {"count", selection_noun(r->selection), VIEW_COUNT, report_counts(r, 0)},
        [STACK] = {"stack", "stack", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
        [PLACE] = {"place", "source", VIEW_TEXT, 120, .cut = VIEW_CUT_START},
        [WHOLE] = {"whole_stack", "whole stack", VIEW_TEXT, VIEW_MACHINES},
    };
    const struct tree *t = r->tree;
    struct ranked *all = memory_array(t->nodes.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < t->nodes.len; i++) {
        const struct tree_node *n = &t->nodes.data[i];
        if (n->self || n->self_count)
            all[count++] = (struct ranked){
                i, tree_symbol(t, i)->name, {.self = n->self, .self_count = n->self_count}};
    }
    rank(all, count, r->sort == REPORT_BY_TOTAL ? REPORT_BY_SELF : r->sort);
    struct view_section *s = view_add_table(v, id, title, columns, COLUMNS);
    size_t shown = limit && limit < count ? limit : count;
    for (size_t i = 0; i < shown; i++)
        put_stack(s, r, all[i].id);
    put_rest(s, r, all + shown, count - shown);
    free(all);
}
