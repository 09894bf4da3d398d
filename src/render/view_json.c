/* Views as JSON; see view_json.h. */
#include "render/view_json.h"

static void put_value(struct json *j, const struct view_column *as, struct view_value value)
{
    json_key(j, as->id);
    if (!value.known)
        json_nothing(j);
    else if (as->kind == VIEW_TEXT)
        json_text(j, value.text);
    else if (as->kind == VIEW_PERCENT || as->kind == VIEW_REAL)
        json_double(j, value.percent);
    else if (as->change)
        json_int(j, value.change);
    else
        json_uint(j, value.number);
}

static void put_column(struct json *j, const struct view_column *c)
{
    json_open_object(j);
    json_put_string(j, "id", c->id);
    json_put_string(j, "heading", c->heading);
    json_put_string(j, "kind", view_kind_name(c->kind));
    json_end(j);
}

static void put_facts(struct json *j, const struct view_section *s)
{
    json_key(j, "columns");
    json_open_array(j);
    for (size_t i = 0; i < s->facts.len; i++)
        put_column(j, &s->facts.data[i].as);
    json_end(j);
    json_key(j, "facts");
    json_open_object(j);
    for (size_t i = 0; i < s->facts.len; i++)
        put_value(j, &s->facts.data[i].as, s->facts.data[i].value);
    json_end(j);
}

static void put_table(struct json *j, const struct view_section *s)
{
    json_key(j, "columns");
    json_open_array(j);
    for (size_t i = 0; i < s->column_count; i++)
        put_column(j, &s->columns[i]);
    json_end(j);
    json_key(j, "rows");
    json_open_array(j);
    for (size_t row = 0; row < s->rows.len; row++) {
        json_open_object(j);
        if (s->tree)
            json_put_uint(j, "depth", s->rows.data[row].depth);
        if (s->rows.data[row].emphasis == VIEW_REST)
            json_put_bool(j, "rest", true);
        for (size_t i = 0; i < s->column_count; i++)
            put_value(j, &s->columns[i], s->cells.data[row * s->column_count + i]);
        json_end(j);
    }
    json_end(j);
    json_put_uint(j, "omitted", s->omitted);
}

static void put_notes(struct json *j, const struct view_section *s)
{
    json_key(j, "notes");
    json_open_array(j);
    for (size_t i = 0; i < s->notes.len; i++) {
        json_open_object(j);
        json_put_string(j, "level", s->notes.data[i].level == NOTE_WARNING ? "warning" : "info");
        json_put_string(j, "text", s->notes.data[i].text);
        json_end(j);
    }
    json_end(j);
    json_put_uint(j, "omitted", s->omitted);
}

static void put_commands(struct json *j, const struct view_section *s)
{
    json_key(j, "commands");
    json_open_array(j);
    for (size_t i = 0; i < s->commands.len; i++) {
        json_open_object(j);
        json_put_string(j, "command", s->commands.data[i].line);
        json_put_string(j, "meaning", s->commands.data[i].meaning);
        json_end(j);
    }
    json_end(j);
}

void view_json(const struct view *v, struct json *j)
{
    static const char *const kinds[] = {
        [VIEW_FACTS] = "facts",
        [VIEW_TABLE] = "table",
        [VIEW_NOTES] = "notes",
        [VIEW_COMMANDS] = "commands",
    };
    static void (*const put[])(struct json *, const struct view_section *) = {
        [VIEW_FACTS] = put_facts,
        [VIEW_TABLE] = put_table,
        [VIEW_NOTES] = put_notes,
        [VIEW_COMMANDS] = put_commands,
    };
    json_open_object(j);
    json_put_string(j, "view", v->id);
    json_put_string(j, "title", v->title);
    json_key(j, "sections");
    json_open_object(j);
    for (size_t i = 0; i < v->sections.len; i++) {
        const struct view_section *s = v->sections.data[i];
        json_key(j, s->id);
        json_open_object(j);
        json_put_string(j, "kind", kinds[s->kind]);
        json_put_string(j, "title", s->title);
        put[s->kind](j, s);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}
