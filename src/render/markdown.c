/* Views as Markdown; see markdown.h. */
#include "render/markdown.h"

#include <string.h>

#include "render/terminal_internal.h"

/* What would be markup is escaped: names come from outside. */
static void add_escaped(struct text *out, const char *s)
{
    struct text clean = TEXT_INIT;
    text_add_printable(&clean, s);
    for (const char *c = clean.data; *c; c++) {
        if (strchr("|*_`<>[]\\", *c))
            text_add_char(out, '\\');
        text_add_char(out, *c);
    }
    text_release(&clean);
}

static bool is_shown(const struct view_section *s, size_t column)
{
    return s->columns[column].from_width != VIEW_MACHINES;
}

static void add_table(const struct view_section *s, struct text *out)
{
    struct text cell = TEXT_INIT;
    text_add(out, "\n|");
    for (size_t i = 0; i < s->column_count; i++)
        if (is_shown(s, i)) {
            text_add_char(out, ' ');
            add_escaped(out, !i && *s->title ? s->title : s->columns[i].heading);
            text_add(out, " |");
        }
    text_add(out, "\n|");
    for (size_t i = 0; i < s->column_count; i++)
        if (is_shown(s, i))
            text_add(out, i ? "---:|" : ":---|");
    text_add_char(out, '\n');
    for (size_t row = 0; row < s->rows.len; row++) {
        bool strong = s->rows.data[row].emphasis == VIEW_STRONG;
        text_add_char(out, '|');
        for (size_t i = 0; i < s->column_count; i++) {
            if (!is_shown(s, i))
                continue;
            text_clear(&cell);
            terminal_value(&cell, s->columns[i].kind, s->cells.data[row * s->column_count + i]);
            text_add(out, strong ? " **" : " ");
            add_escaped(out, cell.data);
            text_add(out, strong ? "** |" : " |");
        }
        text_add_char(out, '\n');
    }
    text_release(&cell);
}

void markdown_write(const struct view *v, struct text *out)
{
    if (*v->title) {
        text_add(out, "### ");
        add_escaped(out, v->title);
        text_add_char(out, '\n');
    }
    for (size_t i = 0; i < v->sections.len; i++) {
        const struct view_section *s = v->sections.data[i];
        if (s->kind == VIEW_TABLE && s->rows.len && !s->hidden)
            add_table(s, out);
        for (size_t k = 0; s->kind == VIEW_NOTES && k < s->notes.len; k++) {
            text_add(out, k ? "- " : "\n- ");
            add_escaped(out, s->notes.data[k].text);
            text_add_char(out, '\n');
        }
    }
}
