/* Counts as a table; see jobs_table.h. */
#include "serve/jobs_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int jobs_table_take(void *context, const struct store_count *c, struct error *err)
{
    struct jobs_table *t = context;
    bool fresh;
    uint32_t column = names_add(&t->columns, t->column ? t->column : c->event);
    uint32_t executable = names_add(&t->texts, c->executable);
    uint32_t name = names_add(&t->texts, c->name);
    uint64_t row = *map_put(&t->index, executable, name, t->rows.len, &fresh);
    if (fresh)
        *vector_push(&t->rows) = (struct jobs_row){executable, name};
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
}

static uint64_t value_at(const struct jobs_table *t, uint64_t row, uint64_t column)
{
    const uint64_t *v = map_get(&t->values, row, column);
    return v ? *v : 0;
}

struct ranked {
    uint64_t value;
    size_t row;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static uint64_t rank_of(const struct jobs_table *t, size_t row, bool any)
{
    uint64_t rank = 0;
    for (size_t k = 0; k < t->columns.len && (any || !rank); k++) {
        uint64_t value = value_at(t, row, k);
        rank = value > rank ? value : rank;
    }
    return rank;
}

void jobs_table_cut(struct jobs_table *t, size_t rows)
{
    if (rows && rows < t->rows.len)
        t->rows.len = rows;
}

void jobs_table_sort(struct jobs_table *t, bool any)
{
    struct ranked *order = memory_array(t->rows.len + 1, sizeof *order);
    struct jobs_row *rows = memory_array(t->rows.len + 1, sizeof *rows);
    struct map values = {0};
    for (size_t i = 0; i < t->rows.len; i++) {
        order[i].row = i;
        order[i].value = rank_of(t, i, any);
    }
    qsort(order, t->rows.len, sizeof *order, by_value);
    for (size_t i = 0; i < t->rows.len; i++) {
        rows[i] = t->rows.data[order[i].row];
        for (size_t k = 0; k < t->columns.len; k++) {
            const uint64_t *v = map_get(&t->values, order[i].row, k);
            if (v)
                map_put(&values, i, k, *v, NULL);
        }
    }
    if (t->rows.len)
        memcpy(t->rows.data, rows, t->rows.len * sizeof *rows);
    map_release(&t->values);
    t->values = values;
    free(rows);
    free(order);
}

void jobs_table_json(const struct jobs_table *t, struct json *json)
{
    json_key(json, "columns");
    json_open_array(json);
    for (size_t k = 0; k < t->columns.len; k++)
        json_text(json, t->columns.text[k]);
    json_end(json);
    json_key(json, "rows");
    json_open_array(json);
    for (size_t i = 0; i < t->rows.len; i++) {
        json_open_object(json);
        json_put_string(json, "executable", t->texts.text[t->rows.data[i].executable]);
        json_put_string(json, "function", t->texts.text[t->rows.data[i].name]);
        json_key(json, "values");
        json_open_array(json);
        for (size_t k = 0; k < t->columns.len; k++)
            json_uint(json, value_at(t, i, k));
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
    for (size_t k = 0; k < t->columns.len; k++) {
        text_add_char(out, ',');
        add_cell(out, t->columns.text[k]);
    }
    text_add(out, "\r\n");
    for (size_t i = 0; i < t->rows.len; i++) {
        add_cell(out, t->texts.text[t->rows.data[i].executable]);
        text_add_char(out, ',');
        add_cell(out, t->texts.text[t->rows.data[i].name]);
        for (size_t k = 0; k < t->columns.len; k++) {
            text_add_char(out, ',');
            json_add_uint(out, value_at(t, i, k));
        }
        text_add(out, "\r\n");
    }
}
