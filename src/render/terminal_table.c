/*
 * Tables on a terminal. Columns that asked for a wider terminal are left out, as are
 * those without a value; of the texts one takes the width that is left, and all are
 * shortened where there is too little.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "render/terminal_internal.h"

#define FILL_MIN 8
#define BAR_FROM 110 /* terminal columns */
#define BAR_WIDTH 12

struct layout_column {
    size_t source; /* in the section */
    size_t width, gap;
    bool text;
    bool bar;
};

struct layout {
    const struct view_section *section;
    struct layout_column *columns;
    size_t len;
    size_t name;    /* the column of names, or len */
    size_t fill;    /* the column that takes what is left of the width, or len */
    unsigned *last; /* by row: no sibling follows */
    unsigned step;  /* columns a level of a tree takes */
    size_t indent_max;
};

static size_t width_min(enum view_kind kind)
{
    switch (kind) {
    case VIEW_TEXT:
        return 1;
    case VIEW_PERCENT:
        return 6;
    case VIEW_NUMBER:
        return 5;
    default:
        return 8;
    }
}

/* Column headings in place; the title stands over the names. */
static const char *heading(const struct layout *l, size_t i)
{
    const struct view_section *s = l->section;
    if (i == l->name && *s->title)
        return s->title;
    return s->columns[l->columns[i].source].heading;
}

static void format_cell(const struct view_section *s, size_t row, size_t column, struct text *out)
{
    const struct view_value *values = &s->cells.data[row * s->column_count];
    struct view_value v = values[column];
    text_clear(out);
    /* A row whose first number is not known has none worth a dash. */
    if (v.known || (values->known && s->columns[column].kind != VIEW_TEXT))
        (s->columns[column].change ? terminal_change : terminal_value)(out, s->columns[column].kind,
                                                                       v);
}

/* Nothing to show in any row? */
static bool is_blank(const struct view_section *s, size_t column)
{
    for (size_t row = 0; row < s->rows.len; row++) {
        const struct view_value *v = &s->cells.data[row * s->column_count + column];
        if (v->known && (s->columns[column].kind != VIEW_TEXT || *v->text))
            return false;
    }
    return true;
}

static void choose_columns(struct layout *l, unsigned width)
{
    const struct view_section *s = l->section;
    l->columns = memory_array(s->column_count, sizeof *l->columns);
    l->name = SIZE_MAX;
    for (size_t i = 0; i < s->column_count; i++) {
        const struct view_column *c = &s->columns[i];
        if (c->from_width > width || is_blank(s, i))
            continue;
        bool text = c->kind == VIEW_TEXT;
        if (text && l->name == SIZE_MAX)
            l->name = l->fill = l->len;
        if (text && c->fill)
            l->fill = l->len;
        l->columns[l->len++] = (struct layout_column){.source = i,
                                                      .width = width_min(c->kind),
                                                      .gap = c->kind == VIEW_PERCENT ? 1 : 2,
                                                      .text = text,
                                                      .bar = c->bar && width >= BAR_FROM};
    }
    if (l->name == SIZE_MAX)
        l->name = l->fill = l->len;
    if (l->len)
        l->columns[0].gap = 0;
}

static size_t indent_of(const struct layout *l, unsigned depth)
{
    size_t n = (size_t)depth * l->step;
    return n < l->indent_max ? n : l->indent_max;
}

static void measure(struct layout *l)
{
    const struct view_section *s = l->section;
    struct text cell = TEXT_INIT;
    for (size_t i = 0; i < l->len; i++) {
        struct layout_column *c = &l->columns[i];
        size_t n = text_columns(heading(l, i));
        c->width = n > c->width ? n : c->width;
        for (size_t row = 0; row < s->rows.len; row++) {
            format_cell(s, row, c->source, &cell);
            n = text_columns(cell.data);
            if (i == l->name && s->tree)
                n += indent_of(l, s->rows.data[row].depth);
            c->width = n > c->width ? n : c->width;
        }
    }
    text_release(&cell);
}

/* Gives text columns what the numbers leave of the width. */
static void fit(struct layout *l, unsigned width)
{
    size_t fixed = 0, others = 0;
    for (size_t i = 0; i < l->len; i++) {
        const struct layout_column *c = &l->columns[i];
        fixed += c->gap + (c->text ? 0 : c->width) + (c->bar ? BAR_WIDTH + 1 : 0);
        others += c->text && i != l->fill ? c->width : 0;
    }
    size_t left = width > fixed ? width - fixed : 0;
    if (l->fill == l->len)
        return;
    struct layout_column *fill = &l->columns[l->fill];
    if (fill->width + others <= left)
        return;
    /* The other texts give way first, down to a share of what there is. */
    size_t share = left / 3;
    for (size_t i = l->len; i-- > 0 && fill->width + others > left;) {
        struct layout_column *c = &l->columns[i];
        if (!c->text || i == l->fill || c->width <= share)
            continue;
        size_t over = fill->width + others - left, can = c->width - share;
        size_t cut = over < can ? over : can;
        c->width -= cut;
        others -= cut;
    }
    size_t room = left > others ? left - others : 0;
    if (room < FILL_MIN)
        room = FILL_MIN;
    fill->width = fill->width < room ? fill->width : room;
}

/* A level takes two columns, or one when the tree is deep, and never more than half the names. */
static void plan_tree(struct layout *l, unsigned width)
{
    const struct view_section *s = l->section;
    unsigned deepest = 0;
    for (size_t i = 0; i < s->rows.len; i++)
        deepest = s->rows.data[i].depth > deepest ? s->rows.data[i].depth : deepest;
    l->indent_max = width / 4;
    l->step = deepest * 3 <= l->indent_max ? 3 : deepest * 2 <= l->indent_max * 2 ? 2 : 1;
    l->last = memory_array(s->rows.len + 1, sizeof *l->last);
    bool *open = memory_array((size_t)deepest + 1, sizeof *open);
    for (size_t i = s->rows.len; i-- > 0;) {
        unsigned d = s->rows.data[i].depth;
        l->last[i] = !open[d];
        open[d] = true;
        memset(open + d + 1, 0, (deepest - d) * sizeof *open);
    }
    free(open);
}

/* What stands before a name in a tree; `bars` says which ancestors have siblings to come. */
static void add_branches(const struct layout *l, size_t row, bool *bars, struct text *out)
{
    unsigned depth = l->section->rows.data[row].depth;
    size_t indent = indent_of(l, depth);
    bars[depth] = !l->last[row];
    if (l->step < 2 || (size_t)depth * l->step > l->indent_max) {
        text_add_repeat(out, ' ', indent);
        return;
    }
    const char *pad = l->step == 3 ? "  " : " ";
    for (unsigned d = 1; d < depth; d++) {
        text_add(out, bars[d] ? "│" : " ");
        text_add(out, pad);
    }
    if (depth) {
        text_add(out, l->last[row] ? "└─" : "├─");
        text_add_repeat(out, ' ', l->step - 2);
    }
}

static enum paint heat(double percent)
{
    return percent >= 20 ? PAINT_HOT : percent >= 5 ? PAINT_WARM : PAINT_NONE;
}

static enum paint direction(const struct view_column *c, struct view_value v)
{
    double by = c->kind == VIEW_PERCENT ? v.percent : (double)v.change;
    return !v.known || v.faint || by == 0 ? PAINT_NONE : by > 0 ? PAINT_WORSE : PAINT_BETTER;
}

static void write_bar(struct terminal *t, double percent, enum paint paint)
{
    struct text bar = TEXT_INIT;
    double halves = percent / 100 * BAR_WIDTH * 2 + 0.5;
    unsigned n = halves < 0 ? 0 : halves > BAR_WIDTH * 2 ? BAR_WIDTH * 2 : (unsigned)halves;
    for (unsigned i = 0; i < n / 2; i++)
        text_add(&bar, "━");
    text_add(&bar, n % 2 ? "╸" : "");
    text_add_char(t->out, ' ');
    terminal_paint(t, paint, bar.data);
    text_add_repeat(t->out, ' ', BAR_WIDTH - (n + 1) / 2);
    text_release(&bar);
}

static void write_cell(struct terminal *t, const struct layout *l, size_t row, size_t i,
                       const struct text *branches)
{
    const struct view_section *s = l->section;
    const struct layout_column *c = &l->columns[i];
    struct view_value v = s->cells.data[row * s->column_count + c->source];
    enum view_emphasis emphasis = s->rows.data[row].emphasis;
    enum paint paint = emphasis == VIEW_REST || !v.known ? PAINT_DIM : PAINT_NONE;
    struct text cell = TEXT_INIT;
    format_cell(s, row, c->source, &cell);
    text_add_repeat(t->out, ' ', c->gap);
    if (c->text) {
        bool name = i == l->name, final = i + 1 == l->len;
        size_t used = name ? text_columns(branches->data) : 0;
        if (name)
            terminal_paint(t, PAINT_DIM, branches->data);
        terminal_shorten(&cell, c->width > used ? c->width - used : 1, s->columns[c->source].cut);
        size_t width = used + text_columns(cell.data);
        if (!name)
            paint = PAINT_DIM;
        else if (emphasis == VIEW_STRONG)
            paint = PAINT_BOLD;
        terminal_paint(t, paint, cell.data);
        text_add_repeat(t->out, ' ', final || width > c->width ? 0 : c->width - width);
    } else {
        if (s->columns[c->source].kind == VIEW_PERCENT && s->columns[c->source].bar && v.known &&
            paint == PAINT_NONE)
            paint = heat(v.percent);
        if (s->columns[c->source].change && paint == PAINT_NONE)
            paint = direction(&s->columns[c->source], v);
        text_add_repeat(t->out, ' ', c->width - text_columns(cell.data));
        terminal_paint(t, paint, cell.data);
        if (c->bar)
            write_bar(t, v.known ? v.percent : 0, paint);
    }
    text_release(&cell);
}

static void trim_line(struct text *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = 0;
}

static void write_headings(struct terminal *t, const struct layout *l)
{
    struct text words = TEXT_INIT;
    for (size_t i = 0; i < l->len; i++) {
        const struct layout_column *c = &l->columns[i];
        text_clear(&words);
        text_add(&words, heading(l, i));
        terminal_shorten(&words, c->width, VIEW_CUT_END);
        size_t pad = c->width - text_columns(words.data);
        text_add_repeat(t->out, ' ', c->gap + (c->text ? 0 : pad));
        terminal_paint(t, i == l->name && *l->section->title ? PAINT_BOLD : PAINT_DIM, words.data);
        text_add_repeat(t->out, ' ', c->text && i + 1 < l->len ? pad : 0);
        text_add_repeat(t->out, ' ', c->bar ? BAR_WIDTH + 1 : 0);
    }
    trim_line(t->out);
    text_add_char(t->out, '\n');
    text_release(&words);
}

void terminal_table(struct terminal *t, const struct view_section *s)
{
    struct layout l = {.section = s};
    choose_columns(&l, t->width);
    plan_tree(&l, t->width);
    measure(&l);
    fit(&l, t->width);
    write_headings(t, &l);
    unsigned deepest = 0;
    for (size_t i = 0; i < s->rows.len; i++)
        deepest = s->rows.data[i].depth > deepest ? s->rows.data[i].depth : deepest;
    bool *bars = memory_array((size_t)deepest + 1, sizeof *bars);
    struct text branches = TEXT_INIT;
    for (size_t row = 0; row < s->rows.len; row++) {
        text_clear(&branches);
        if (s->tree)
            add_branches(&l, row, bars, &branches);
        for (size_t i = 0; i < l.len; i++)
            write_cell(t, &l, row, i, &branches);
        trim_line(t->out);
        text_add_char(t->out, '\n');
    }
    text_release(&branches);
    free(bars);
    free(l.columns);
    free(l.last);
}
