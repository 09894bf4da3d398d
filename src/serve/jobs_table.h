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
};

struct jobs_table {
    struct names texts;
    struct names columns;
    struct map index;  /* (executable, name) -> row */
    struct map values; /* (row, column) -> value */
    VECTOR(struct jobs_row) rows;
    const char *column; /* the one being filled, or NULL: that of the event */
    size_t max;         /* values */
};

/* As a store_count_fn: the context is the table. */
int jobs_table_take(void *context, const struct store_count *c, struct error *err);
void jobs_table_release(struct jobs_table *t);
/* Largest of the first column first; or of any column, where two jobs are compared. */
void jobs_table_sort(struct jobs_table *t, bool any);
/* The first so many rows stay; 0: all. */
void jobs_table_cut(struct jobs_table *t, size_t rows);
/* {"columns": [...], "rows": [{"executable", "function", "values": [...]}]}, the members alone. */
void jobs_table_json(const struct jobs_table *t, struct json *json);
void jobs_table_csv(const struct jobs_table *t, struct text *out);

#endif
