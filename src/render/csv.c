/* Tables as CSV; see csv.h. */
#include "render/csv.h"

#include <string.h>

static void add_text(struct text *out, const char *s)
{
    struct text clean = TEXT_INIT;
    if (*s && strchr("=+-@", *s))
        text_add_char(&clean, '\'');
    text_add_printable(&clean, s);
    if (!strpbrk(clean.data, ",\"")) {
        text_add(out, clean.data);
    } else {
        text_add_char(out, '"');
        for (const char *c = clean.data; *c; c++)
            text_add(out, *c == '"' ? "\"\"" : (const char[]){*c, 0});
        text_add_char(out, '"');
    }
    text_release(&clean);
}

static void add_value(struct text *out, const struct view_column *as, struct view_value value)
{
    if (!value.known)
        return;
    if (as->kind == VIEW_TEXT)
        add_text(out, value.text);
    else if (as->kind == VIEW_PERCENT || as->kind == VIEW_REAL)
        text_format(out, "%.10g", value.percent);
    else if (as->change)
        text_format(out, "%lld", (long long)value.change);
    else
        text_format(out, "%llu", (unsigned long long)value.number);
}

void csv_write(const struct view *v, struct text *out)
{
    const struct view_section *s = view_find(v, v->main);
    if (!s || s->kind != VIEW_TABLE)
        return;
    if (s->tree)
        text_add(out, "depth,");
    for (size_t i = 0; i < s->column_count; i++)
        text_format(out, "%s%s", i ? "," : "", s->columns[i].id);
    text_add(out, "\r\n");
    for (size_t row = 0; row < s->rows.len; row++) {
        if (s->tree)
            text_format(out, "%u,", s->rows.data[row].depth);
        for (size_t i = 0; i < s->column_count; i++) {
            text_add(out, i ? "," : "");
            add_value(out, &s->columns[i], s->cells.data[row * s->column_count + i]);
        }
        text_add(out, "\r\n");
    }
}
