/*
 * Counts of one or two jobs as a table: a row a function of an executable, a column an event (or
 * a job, where two are compared). Bounded: more rows than asked for are a fault, not memory.
 */
#ifndef SONDE_SERVE_JOBS_TABLE_H
#define SONDE_SERVE_JOBS_TABLE_H

#include "base/json.h"
#include "base/map.h"
#include "store/store.h"

struct jobs_row {
    uint32_t executable, name; /* of texts */
    uint32_t number;           /* of values */
};

struct jobs_table {
    struct names texts;
    struct names columns;
    struct map index;  /* (executable, name) -> row */
    struct map values; /* (number, column) -> value */
    VECTOR(struct jobs_row) rows;
    VECTOR(uint32_t) order; /* of the columns, as they are shown */
    const char *column;     /* the one being filled, or NULL: that of the event */
    size_t max;             /* values */
};

/* As a store_count_fn: the context is the table. */
int jobs_table_take(void *context, const struct store_count *c, struct error *err);
void jobs_table_release(struct jobs_table *t);
/* Before anything is written. Columns by event, "cpu" first; rows with the largest of the first
 * column first, those that are equal there by the second, and so on. Where columns are `jobs`, they
 * stay as they came, and rows are ordered by the larger value. The store has no say in it. */
void jobs_table_sort(struct jobs_table *t, bool jobs);
/* The first so many rows stay; 0: all. */
void jobs_table_cut(struct jobs_table *t, size_t rows);
/* {"columns": [...], "rows": [{"executable", "function", "values": [...]}]}, the members alone. */
void jobs_table_json(const struct jobs_table *t, struct json *json);
void jobs_table_csv(const struct jobs_table *t, struct text *out);

#endif
