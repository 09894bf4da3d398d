/* Building and reading views; see view.h. */
#include "analyze/view.h"

#include <math.h>
#include <string.h>

void view_init(struct view *v, const char *id, const char *title, const char *main)
{
    *v = (struct view){0};
    v->id = arena_strdup(&v->arena, id);
    v->title = arena_strdup(&v->arena, title);
    v->main = arena_strdup(&v->arena, main);
}

void view_release(struct view *v)
{
    for (size_t i = 0; i < v->sections.len; i++) {
        struct view_section *s = v->sections.data[i];
        vector_release(&s->facts);
        vector_release(&s->rows);
        vector_release(&s->cells);
        vector_release(&s->notes);
        vector_release(&s->commands);
    }
    vector_release(&v->sections);
    arena_release(&v->arena);
}

struct view_section *view_add(struct view *v, enum view_section_kind kind, const char *id,
                              const char *title)
{
    struct view_section *s = arena_alloc(&v->arena, sizeof *s);
    s->kind = kind;
    s->id = arena_strdup(&v->arena, id);
    s->title = arena_strdup(&v->arena, title);
    s->arena = &v->arena;
    *vector_push(&v->sections) = s;
    return s;
}

static struct view_column own_column(struct arena *a, struct view_column c)
{
    c.id = arena_strdup(a, c.id);
    c.heading = arena_strdup(a, c.heading);
    return c;
}

struct view_section *view_add_table(struct view *v, const char *id, const char *title,
                                    const struct view_column *columns, size_t count)
{
    struct view_section *s = view_add(v, VIEW_TABLE, id, title);
    s->columns = arena_alloc(&v->arena, count * sizeof *columns);
    s->column_count = count;
    for (size_t i = 0; i < count; i++)
        s->columns[i] = own_column(&v->arena, columns[i]);
    return s;
}

struct view_value *view_row(struct view_section *s, unsigned depth, enum view_emphasis emphasis)
{
    *vector_push(&s->rows) = (struct view_row){.depth = depth, .emphasis = emphasis};
    size_t at = s->cells.len;
    vector_reserve(&s->cells, at + s->column_count);
    s->cells.len = at + s->column_count;
    memset(&s->cells.data[at], 0, s->column_count * sizeof *s->cells.data);
    return &s->cells.data[at];
}

struct view_fact *view_fact(struct view_section *s, const char *line, const char *id,
                            const char *heading, enum view_kind kind, struct view_value value)
{
    struct view_fact *f = vector_push(&s->facts);
    *f = (struct view_fact){
        .as = own_column(s->arena, (struct view_column){id, heading, kind}),
        .value = value,
        .line = arena_strdup(s->arena, line),
        .before = "",
        .after = "",
    };
    return f;
}

void view_note(struct view_section *s, enum note_level level, const char *text)
{
    *vector_push(&s->notes) =
        (struct view_note){.level = level, .text = arena_strdup(s->arena, text)};
}

void view_command(struct view_section *s, const char *line, const char *meaning)
{
    *vector_push(&s->commands) = (struct view_command){.line = arena_strdup(s->arena, line),
                                                       .meaning = arena_strdup(s->arena, meaning)};
}

struct view_value view_text(struct view_section *s, const char *text)
{
    return (struct view_value){.known = true, .text = arena_strdup(s->arena, text)};
}

struct view_value view_number(uint64_t number)
{
    return (struct view_value){.known = true, .number = number};
}

struct view_value view_change(int64_t change)
{
    return (struct view_value){.known = true, .change = change};
}

struct view_value view_real(double value)
{
    return (struct view_value){.known = isfinite(value), .percent = value};
}

struct view_value view_nonzero(uint64_t number)
{
    return (struct view_value){.known = number != 0, .number = number};
}

struct view_value view_percent(uint64_t part, uint64_t whole)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;
    return (struct view_value){.known = true, .percent = percent};
}

const struct view_section *view_find(const struct view *v, const char *id)
{
    for (size_t i = 0; i < v->sections.len; i++)
        if (!strcmp(v->sections.data[i]->id, id))
            return v->sections.data[i];
    return NULL;
}

const struct view_value *view_cell(const struct view_section *s, size_t row, const char *column)
{
    for (size_t i = 0; row < s->rows.len && i < s->column_count; i++)
        if (!strcmp(s->columns[i].id, column))
            return &s->cells.data[row * s->column_count + i];
    return NULL;
}

enum view_kind view_kind_of(enum value_unit unit)
{
    switch (unit) {
    case UNIT_NANOSECONDS:
        return VIEW_DURATION;
    case UNIT_BYTES:
        return VIEW_BYTES;
    default:
        return VIEW_COUNT;
    }
}

const char *view_kind_name(enum view_kind kind)
{
    static const char *const names[] = {
        [VIEW_TEXT] = "text",   [VIEW_NUMBER] = "number", [VIEW_COUNT] = "count",
        [VIEW_DURATION] = "ns", [VIEW_BYTES] = "bytes",   [VIEW_PERCENT] = "percent",
        [VIEW_DATE] = "date",   [VIEW_REAL] = "real",
    };
    return names[kind];
}
