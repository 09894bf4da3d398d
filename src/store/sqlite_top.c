/*
 * The largest counts without reading all. A *set* is the counts of one event of one kind and day of
 * a job. Beside each set that has become large, `largest` holds those of its counts that may be
 * among the largest: counts only grow, so whatever gets there passes the set's floor, which is the
 * largest count that was ever left out. Small sets are simply read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/sqlite_internal.h"

#define FEW 20000 /* rows of a set that is still read whole */
#define KEPT 2048 /* of the largest, after they were thinned out */
#define KEPT_MAX 4096
#define SPARE 4       /* times as many as are wanted are taken of each of several days */
#define NO_FLOOR (-1) /* the set has no `largest` yet */

static void bind_set(sqlite3_stmt *st, const struct sqlite_set *set)
{
    sqlite3_bind_int64(st, 1, set->job);
    sqlite3_bind_int64(st, 2, set->kind);
    sqlite3_bind_int64(st, 3, set->event);
    sqlite3_bind_int64(st, 4, set->day);
}

int sqlite_set_open(struct sqlite_store *s, struct sqlite_set *set, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_SET_GET, err);
    if (!st)
        return err->fault;
    bind_set(st, set);
    int rc = sqlite_step(s, st, "read how large counts are", err);
    set->rows = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    set->kept = rc == 1 ? sqlite3_column_int64(st, 1) : 0;
    set->floor = rc == 1 ? sqlite3_column_int64(st, 2) : NO_FLOOR;
    set->changed = rc == 0;
    sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

int sqlite_set_note(struct sqlite_store *s, struct sqlite_set *set, int64_t node, int64_t value,
                    bool fresh, struct error *err)
{
    set->rows += fresh;
    set->changed |= fresh;
    if (set->floor == NO_FLOOR || value <= set->floor)
        return 0;
    sqlite3_stmt *st = sqlite_prepare(s, SQL_LARGEST_PUT, err);
    if (!st)
        return err->fault;
    bind_set(st, set);
    sqlite3_bind_int64(st, 5, node);
    sqlite3_bind_int64(st, 6, value);
    s->noted = SQLITE_NOTHING_NOTED;
    int rc = sqlite_step(s, st, "note a large count", err);
    bool added = s->noted == SQLITE_NOTHING_NOTED;
    set->kept += added;
    set->changed |= added;
    return rc;
}

/* One statement of a set's, with a number at ?5. */
static int do_with(struct sqlite_store *s, enum sqlite_statement which,
                   const struct sqlite_set *set, int64_t number, int64_t *answer, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, which, err);
    if (!st)
        return err->fault;
    bind_set(st, set);
    sqlite3_bind_int64(st, 5, number);
    int rc = sqlite_step(s, st, "sort out large counts", err);
    if (rc == 1 && answer)
        *answer = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

/* The largest KEPT stay, or come; the count in the place after them is the floor. */
static int thin_out(struct sqlite_store *s, struct sqlite_set *set, struct error *err)
{
    bool first = set->floor == NO_FLOOR;
    int64_t floor = 0;
    int rc = do_with(s, first ? SQL_COUNT_AT : SQL_LARGEST_AT, set, KEPT, &floor, err);
    if (!rc)
        rc = do_with(s, first ? SQL_LARGEST_FILL : SQL_LARGEST_THIN, set, KEPT, NULL, err);
    if (!rc)
        rc = do_with(s, SQL_LARGEST_SIZE, set, 0, &set->kept, err);
    set->floor = floor;
    set->changed = true;
    return rc;
}

int sqlite_set_close(struct sqlite_store *s, struct sqlite_set *set, struct error *err)
{
    int rc = 0;
    if (set->floor == NO_FLOOR ? set->rows > FEW : set->kept > KEPT_MAX)
        rc = thin_out(s, set, err);
    if (rc || !set->changed)
        return rc;
    sqlite3_stmt *st = sqlite_prepare(s, SQL_SET_PUT, err);
    if (!st)
        return err->fault;
    bind_set(st, set);
    sqlite3_bind_int64(st, 5, set->rows);
    sqlite3_bind_int64(st, 6, set->kept);
    sqlite3_bind_int64(st, 7, set->floor);
    return sqlite_step(s, st, "note how large counts are", err);
}

struct counted {
    int64_t node, value;
};

/* Candidates for the largest over several days. */
struct candidates {
    VECTOR(struct sqlite_set) sets;
    VECTOR(struct counted) rows;
    struct map seen;
    int64_t bound; /* whoever is no candidate has at most so much, all days together */
};

static void candidates_release(struct candidates *c)
{
    vector_release(&c->sets);
    vector_release(&c->rows);
    map_release(&c->seen);
}

static int find_sets(struct sqlite_store *s, const struct store_query *q, int64_t event,
                     struct candidates *c, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_SET_LIST, err);
    int rc = st ? 0 : err->fault;
    struct sqlite_set range = {q->job, q->kind, event, q->from_day, 0, 0, 0, false};
    if (st) {
        bind_set(st, &range);
        sqlite3_bind_int64(st, 5, q->to_day ? q->to_day : INT32_MAX);
    }
    while (!rc && (rc = sqlite_step(s, st, "find the days", err)) == 1) {
        range.day = sqlite3_column_int64(st, 0);
        range.rows = sqlite3_column_int64(st, 1);
        range.kept = sqlite3_column_int64(st, 2);
        range.floor = sqlite3_column_int64(st, 3);
        *vector_push(&c->sets) = range;
        rc = 0;
    }
    return rc;
}

/* The largest `count` of a set as candidates, and what one that is not among them can have. */
static int take_largest(struct sqlite_store *s, const struct sqlite_set *set, size_t count,
                        struct candidates *c, struct error *err)
{
    bool kept = set->floor != NO_FLOOR;
    sqlite3_stmt *st = sqlite_prepare(s, kept ? SQL_LARGEST_LIST : SQL_COUNT_LIST, err);
    if (!st)
        return err->fault;
    bind_set(st, set);
    sqlite3_bind_int64(st, 5, (int64_t)count + 1);
    int64_t bound = kept ? set->floor : 0;
    int rc = 0;
    for (size_t i = 0; !rc && (rc = sqlite_step(s, st, "read large counts", err)) == 1; i++) {
        struct counted row = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1)};
        bool added = false;
        if (i == count)
            bound = row.value;
        else
            map_put(&c->seen, (uint64_t)row.node, 0, 0, &added);
        if (added)
            *vector_push(&c->rows) = row;
        rc = 0;
    }
    sqlite3_reset(st);
    c->bound += bound;
    return rc;
}

/* What each candidate has, all days together. */
static int add_up(struct sqlite_store *s, struct candidates *c, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < c->rows.len; i++) {
        struct counted *row = &c->rows.data[i];
        row->value = 0;
        for (size_t k = 0; !rc && k < c->sets.len; k++) {
            int64_t value = 0;
            rc = do_with(s, SQL_COUNT_GET, &c->sets.data[k], row->node, &value, err);
            row->value += value;
        }
    }
    return rc;
}

static int by_value(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1) : x->node < y->node ? -1 : 1;
}

struct named {
    const char *executable, *name;
    int64_t value;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = x->value != y->value ? (x->value < y->value ? 1 : -1) : strcmp(x->name, y->name);
    return order ? order : strcmp(x->executable, y->executable);
}

static int name_rows(struct sqlite_store *s, const struct candidates *c, size_t count,
                     struct arena *arena, struct named *out, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++) {
        sqlite3_stmt *st = sqlite_prepare(s, SQL_NODE_NAME, err);
        if (!st)
            return err->fault;
        sqlite3_bind_int64(st, 1, c->rows.data[i].node);
        rc = sqlite_step(s, st, "read a name", err);
        if (rc == 0)
            return error_set(err, FAULT_INPUT, "%s is damaged: a function has no name", s->path);
        if (rc == 1) {
            out[i] = (struct named){arena_strdup(arena, (const char *)sqlite3_column_text(st, 0)),
                                    arena_strdup(arena, (const char *)sqlite3_column_text(st, 1)),
                                    c->rows.data[i].value};
            rc = 0;
        }
        sqlite3_reset(st);
    }
    return rc;
}

static int hand_over(struct sqlite_store *s, const struct store_query *q,
                     const struct candidates *c, store_count_fn *fn, void *context,
                     struct error *err)
{
    struct arena arena = {0};
    size_t count = c->rows.len < q->top ? c->rows.len : q->top;
    struct named *rows = memory_array(count + 1, sizeof *rows);
    int rc = name_rows(s, c, count, &arena, rows, err);
    if (!rc)
        qsort(rows, count, sizeof *rows, by_name);
    for (size_t i = 0; !rc && i < count; i++) {
        struct store_count one = {.kind = q->kind,
                                  .event = q->event,
                                  .executable = rows[i].executable,
                                  .name = rows[i].name,
                                  .value = rows[i].value};
        rc = fn(context, &one, err);
    }
    free(rows);
    arena_release(&arena);
    return rc;
}

int sqlite_top(struct sqlite_store *s, const struct store_query *q, int64_t event, bool *sure,
               store_count_fn *fn, void *context, struct error *err)
{
    struct candidates c = {0};
    int rc = find_sets(s, q, event, &c, err);
    for (size_t i = 0; !rc && i < c.sets.len; i++)
        rc = take_largest(s, &c.sets.data[i], c.sets.len > 1 ? q->top * SPARE : q->top, &c, err);
    if (!rc && c.sets.len > 1)
        rc = add_up(s, &c, err);
    if (!rc && c.rows.len)
        qsort(c.rows.data, c.rows.len, sizeof *c.rows.data, by_value);
    *sure = !c.bound || (c.rows.len >= q->top && c.rows.data[q->top - 1].value >= c.bound);
    if (!rc && *sure)
        rc = hand_over(s, q, &c, fn, context, err);
    candidates_release(&c);
    return rc;
}
