/* Counts as a table; see jobs_table.h. */
#include "serve/jobs_table.h"

#include <stdlib.h>
#include <string.h>

int jobs_table_take(void *context, const struct store_count *c, struct error *err)
{
    struct jobs_table *t = context;
    bool fresh;
    uint32_t column = names_add(&t->columns, t->column ? t->column : c->event);
    uint32_t executable = names_add(&t->texts, c->executable);
    uint32_t name = names_add(&t->texts, c->name);
    uint64_t row = *map_put(&t->index, executable, name, t->rows.len, &fresh);
    if (fresh)
        *vector_push(&t->rows) = (struct jobs_row){executable, name, (uint32_t)row};
    *map_put(&t->values, row, column, 0, NULL) += (uint64_t)c->value;
    if (t->values.len > t->max)
        return error_set(err, FAULT_USAGE,
                         "the job has more than %zu values: ask for the largest with 'event' and "
                         "'top', or for a day with 'from' and 'to'",
                         t->max);
    return 0;
}

void jobs_table_release(struct jobs_table *t)
{
    names_release(&t->texts);
    names_release(&t->columns);
    map_release(&t->index);
    map_release(&t->values);
    vector_release(&t->rows);
    vector_release(&t->order);
}

static uint64_t value_at(const struct jobs_table *t, const struct jobs_row *row, size_t shown)
{
    const uint64_t *v = map_get(&t->values, row->number, t->order.data[shown]);
    return v ? *v : 0;
}

void jobs_table_cut(struct jobs_table *t, size_t rows)
{
    if (rows && rows < t->rows.len)
        t->rows.len = rows;
}

static uint64_t largest(const struct jobs_table *t, const struct jobs_row *row)
{
    uint64_t most = 0;
    for (size_t k = 0; k < t->order.len; k++) {
        uint64_t value = value_at(t, row, k);
        most = value > most ? value : most;
    }
    return most;
}

static int by_name(const struct jobs_table *t, const struct jobs_row *a, const struct jobs_row *b)
{
    int names = strcmp(t->texts.text[a->name], t->texts.text[b->name]);
    return names ? names : strcmp(t->texts.text[a->executable], t->texts.text[b->executable]);
}

static int by_columns(const void *a, const void *b, void *context)
{
    const struct jobs_table *t = context;
    for (size_t k = 0; k < t->order.len; k++) {
        uint64_t x = value_at(t, a, k), y = value_at(t, b, k);
        if (x != y)
            return x < y ? 1 : -1;
    }
    return by_name(t, a, b);
}

static int by_largest(const void *a, const void *b, void *context)
{
    uint64_t x = largest(context, a), y = largest(context, b);
    return x != y ? (x < y ? 1 : -1) : by_name(context, a, b);
}

/* What most profiles are about comes first, the rest by name. */
static int by_event(const void *a, const void *b, void *context)
{
    char *const *events = context;
    const char *x = events[*(const uint32_t *)a], *y = events[*(const uint32_t *)b];
    bool first = !strcmp(x, "cpu"), second = !strcmp(y, "cpu");
    return first != second ? second - first : strcmp(x, y);
}

void jobs_table_sort(struct jobs_table *t, bool jobs)
{
    t->order.len = 0;
    for (uint32_t k = 0; k < t->columns.len; k++)
        *vector_push(&t->order) = k;
    if (!jobs && t->order.len)
        qsort_r(t->order.data, t->order.len, sizeof *t->order.data, by_event, t->columns.text);
    if (t->rows.len)
        qsort_r(t->rows.data, t->rows.len, sizeof *t->rows.data, jobs ? by_largest : by_columns, t);
}

void jobs_table_json(const struct jobs_table *t, struct json *json)
{
    json_key(json, "columns");
    json_open_array(json);
    for (size_t k = 0; k < t->order.len; k++)
        json_text(json, t->columns.text[t->order.data[k]]);
    json_end(json);
    json_key(json, "rows");
    json_open_array(json);
    for (size_t i = 0; i < t->rows.len; i++) {
        json_open_object(json);
        json_put_string(json, "executable", t->texts.text[t->rows.data[i].executable]);
        json_put_string(json, "function", t->texts.text[t->rows.data[i].name]);
        json_key(json, "values");
        json_open_array(json);
        for (size_t k = 0; k < t->order.len; k++)
            json_uint(json, value_at(t, &t->rows.data[i], k));
        json_end(json);
        json_end(json);
    }
    json_end(json);
}

/* What a spreadsheet would take for a formula gets a ' before it. */
static void add_cell(struct text *out, const char *text)
{
    text_add_char(out, '"');
    if (*text && strchr("=+-@", *text))
        text_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '"')
            text_add_char(out, '"');
        text_add_char(out, *text);
    }
    text_add_char(out, '"');
}

void jobs_table_csv(const struct jobs_table *t, struct text *out)
{
    text_add(out, "executable,function");
    for (size_t k = 0; k < t->order.len; k++) {
        text_add_char(out, ',');
        add_cell(out, t->columns.text[t->order.data[k]]);
    }
    text_add(out, "\r\n");
    for (size_t i = 0; i < t->rows.len; i++) {
        add_cell(out, t->texts.text[t->rows.data[i].executable]);
        text_add_char(out, ',');
        add_cell(out, t->texts.text[t->rows.data[i].name]);
        for (size_t k = 0; k < t->order.len; k++) {
            text_add_char(out, ',');
            json_add_uint(out, value_at(t, &t->rows.data[i], k));
        }
        text_add(out, "\r\n");
    }
}
