/* What SQLite holds of a job, and what of it is let go; see sqlite.c. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/sqlite_internal.h"

static const char *column(sqlite3_stmt *st, int at)
{
    const char *text = (const char *)sqlite3_column_text(st, at);
    return text ? text : "";
}

/* The statement for a job that is there. */
static sqlite3_stmt *ask(struct sqlite_store *s, enum sqlite_statement which, uint32_t id,
                         struct error *err)
{
    struct job job;
    if (sqlite_job_get(&s->store, id, &job, err))
        return NULL;
    sqlite3_stmt *st = sqlite_prepare(s, which, err);
    if (st) {
        sqlite3_clear_bindings(st);
        sqlite3_bind_int64(st, 1, id);
    }
    return st;
}

static int event_number(struct sqlite_store *s, const char *name, int64_t *id, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_EVENT_GET, err);
    if (!st)
        return err->fault;
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite_step(s, st, "look up the event", err);
    *id = rc == 1 ? sqlite3_column_int64(st, 0) : -1;
    sqlite3_reset(st);
    return rc < 0 ? rc : 0;
}

static int64_t last_day(const struct store_query *q)
{
    return q->to_day ? q->to_day : INT32_MAX;
}

static int hand_over(struct sqlite_store *s, sqlite3_stmt *st, enum count_kind kind,
                     store_count_fn *fn, void *context, struct error *err)
{
    int rc;
    bool dated = sqlite3_column_count(st) > 4;
    while ((rc = sqlite_step(s, st, "read counts", err)) == 1) {
        struct store_count c = {.kind = kind,
                                .day = dated ? (uint32_t)sqlite3_column_int64(st, 4) : 0,
                                .event = column(st, 0),
                                .executable = column(st, 1),
                                .name = column(st, 2),
                                .value = sqlite3_column_int64(st, 3)};
        rc = fn(context, &c, err);
        if (rc)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* Everything that the range has, summed up by function. */
static int top_of_all(struct sqlite_store *s, const struct store_query *q, int64_t event,
                      store_count_fn *fn, void *context, struct error *err)
{
    sqlite3_stmt *st = sqlite_prepare(s, SQL_COUNT_TOP_DAYS, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 1, q->job);
    sqlite3_bind_int64(st, 2, q->kind);
    sqlite3_bind_int64(st, 3, event);
    sqlite3_bind_int64(st, 4, q->from_day);
    sqlite3_bind_int64(st, 5, last_day(q));
    sqlite3_bind_text(st, 6, q->event, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 7, (int64_t)q->top);
    return hand_over(s, st, q->kind, fn, context, err);
}

/* In one transaction: all its statements see the same state. */
static int top(struct sqlite_store *s, const struct store_query *q, store_count_fn *fn,
               void *context, struct error *err)
{
    struct job job;
    int64_t event;
    bool sure = false;
    int rc = sqlite_do(s, SQL_BEGIN_READ, err);
    if (rc)
        return rc;
    rc = sqlite_job_get(&s->store, q->job, &job, err);
    if (!rc)
        rc = event_number(s, q->event, &event, err);
    if (!rc)
        rc = sqlite_top(s, q, event, &sure, fn, context, err);
    if (!rc && !sure)
        rc = top_of_all(s, q, event, fn, context, err);
    sqlite_do(s, SQL_COMMIT, &(struct error){0});
    return rc;
}

int sqlite_counts(struct store *store, const struct store_query *q, store_count_fn *fn,
                  void *context, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    if (q->top)
        return top(s, q, fn, context, err);
    sqlite3_stmt *st = ask(s, q->by_day ? SQL_COUNT_BY_DAY : SQL_COUNT_ALL, q->job, err);
    if (!st)
        return err->fault;
    sqlite3_bind_int64(st, 2, q->kind);
    sqlite3_bind_int64(st, 3, q->from_day);
    sqlite3_bind_int64(st, 4, last_day(q));
    if (q->event)
        sqlite3_bind_text(st, 5, q->event, -1, SQLITE_STATIC);
    return hand_over(s, st, q->kind, fn, context, err);
}

int sqlite_events(struct store *store, uint32_t job, store_event_fn *fn, void *context,
                  struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_EVENT_SUMS, job, err);
    int rc = st ? 0 : err->fault;
    while (!rc && (rc = sqlite_step(s, st, "read the events", err)) == 1) {
        struct store_event e = {column(st, 0), sqlite3_column_int64(st, 1)};
        rc = fn(context, &e, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc;
}

int sqlite_curve(struct store *store, uint32_t job, const char *event, store_point_fn *fn,
                 void *context, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_CURVE, job, err);
    int rc = st ? 0 : err->fault;
    if (st)
        sqlite3_bind_text(st, 2, event, -1, SQLITE_STATIC);
    while (!rc && (rc = sqlite_step(s, st, "read the curve", err)) == 1) {
        struct store_point p = {(uint64_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1)};
        rc = fn(context, &p, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc;
}

int sqlite_bench(struct store *store, uint32_t job, store_bench_fn *fn, void *context,
                 struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_BENCH_LIST, job, err);
    int rc = st ? 0 : err->fault;
    while (!rc && (rc = sqlite_step(s, st, "read the results", err)) == 1) {
        struct store_bench b = {.time = (uint64_t)sqlite3_column_int64(st, 0),
                                .key = column(st, 1),
                                .host = column(st, 2),
                                .name = column(st, 3),
                                .json = column(st, 4)};
        rc = fn(context, &b, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc;
}

int sqlite_recordings(struct store *store, uint32_t job, store_recording_fn *fn, void *context,
                      struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_RECORDING_LIST, job, err);
    int rc = st ? 0 : err->fault;
    while (!rc && (rc = sqlite_step(s, st, "list the recordings", err)) == 1) {
        struct store_recording r = {.key = column(st, 0),
                                    .name = column(st, 1),
                                    .host = column(st, 2),
                                    .time = (uint64_t)sqlite3_column_int64(st, 3),
                                    .size = (uint64_t)sqlite3_column_int64(st, 4)};
        rc = fn(context, &r, err);
    }
    if (st)
        sqlite3_reset(st);
    return rc;
}

int sqlite_recording(struct store *store, uint32_t job, const char *key, void **data, size_t *size,
                     struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_RECORDING_GET, job, err);
    if (!st)
        return err->fault;
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    int rc = sqlite_step(s, st, "read the recording", err);
    if (rc == 0)
        return error_set(err, FAULT_MISSING, "job %u has no recording %s", job, key);
    if (rc < 0)
        return rc;
    *size = (size_t)sqlite3_column_bytes(st, 0);
    *data = *size ? memory_dup(sqlite3_column_blob(st, 0), *size) : memory_alloc(1);
    sqlite3_reset(st);
    return 0;
}

int sqlite_keys(struct store *store, uint32_t job, store_key_fn *fn, void *context,
                struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    sqlite3_stmt *st = ask(s, SQL_KEY_LIST, job, err);
    int rc = st ? 0 : err->fault;
    while (!rc && (rc = sqlite_step(s, st, "read the keys", err)) == 1)
        rc = fn(context, column(st, 0), (uint64_t)sqlite3_column_int64(st, 1), err);
    if (st)
        sqlite3_reset(st);
    return rc;
}

static int run(struct sqlite_store *s, uint64_t *changed, struct error *err, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

static int run(struct sqlite_store *s, uint64_t *changed, struct error *err, const char *format,
               ...)
{
    va_list args;
    va_start(args, format);
    char *line = sqlite3_vmprintf(format, args);
    va_end(args);
    int code = sqlite3_exec(s->db, line, NULL, NULL, NULL);
    sqlite3_free(line);
    if (code)
        return sqlite_fault(s, "remove what is old", err);
    if (changed)
        *changed += (uint64_t)sqlite3_changes(s->db);
    return 0;
}

/* Points of that age become one an interval. */
static int coarsen(struct sqlite_store *s, int64_t before, int64_t width, uint64_t *points,
                   struct error *err)
{
    uint64_t gone = 0, made = 0;
    int rc = run(s, NULL, err,
                 "CREATE TEMP TABLE coarse AS SELECT job, event, time - time %% %lld AS time,"
                 " sum(value) AS value FROM points WHERE time < %lld GROUP BY 1, 2, 3",
                 (long long)width, (long long)before);
    if (!rc)
        rc = run(s, &gone, err, "DELETE FROM points WHERE time < %lld", (long long)before);
    if (!rc)
        rc = run(s, &made, err, "INSERT INTO points SELECT * FROM coarse");
    if (!rc)
        rc = run(s, NULL, err, "DROP TABLE coarse");
    *points += gone - made;
    return rc;
}

/* Jobs that nothing came to, with what is left of them: a number may be given again today. */
static int drop_idle(struct sqlite_store *s, uint64_t cut, struct store_removed *removed,
                     struct error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && sqlite_job_tables[i]; i++)
        rc = run(s, NULL, err,
                 "DELETE FROM %s WHERE job IN (SELECT id FROM jobs WHERE updated < %llu)",
                 sqlite_job_tables[i], (unsigned long long)cut);
    return rc ? rc
              : run(s, &removed->jobs, err, "DELETE FROM jobs WHERE updated < %llu",
                    (unsigned long long)cut);
}

static int drop_old(struct sqlite_store *s, const struct store_retention *how,
                    struct store_removed *removed, struct error *err)
{
    uint64_t cut = how->now > how->keep ? how->now - how->keep : 0;
    uint64_t rows = 0;
    uint32_t day = store_day(cut);
    int rc = run(s, &rows, err, "DELETE FROM counts WHERE day < %u", day);
    if (!rc)
        rc = run(s, NULL, err, "DELETE FROM sets WHERE day < %u", day);
    if (!rc)
        rc = run(s, NULL, err, "DELETE FROM largest WHERE day < %u", day);
    if (!rc)
        rc = run(s, &removed->points, err, "DELETE FROM points WHERE time < %llu",
                 (unsigned long long)day * STORE_DAY);
    if (!rc)
        rc = run(s, &removed->recordings, err, "DELETE FROM recordings WHERE time < %llu",
                 (unsigned long long)cut);
    if (!rc)
        rc = run(s, NULL, err, "DELETE FROM bench WHERE time < %llu", (unsigned long long)cut);
    if (!rc)
        rc = run(s, NULL, err, "DELETE FROM keys WHERE time < %llu", (unsigned long long)cut);
    if (!rc)
        rc = drop_idle(s, cut, removed, err);
    if (!rc && (rows || removed->jobs))
        rc = run(s, NULL, err, "DELETE FROM nodes WHERE id NOT IN (SELECT node FROM counts)");
    removed->counts += rows;
    sqlite_forget_names(s);
    return rc;
}

/* The newest recordings whose sizes add up to less than the bound stay. */
static int drop_large(struct sqlite_store *s, uint64_t max_bytes, uint64_t *gone, struct error *err)
{
    return run(s, gone, err,
               "DELETE FROM recordings WHERE rowid IN (SELECT id FROM (SELECT rowid AS id,"
               " sum(size) OVER (ORDER BY time DESC, rowid DESC) AS upto FROM recordings)"
               " WHERE upto > %llu)",
               (unsigned long long)max_bytes);
}

int sqlite_retain(struct store *store, const struct store_retention *how,
                  struct store_removed *removed, struct error *err)
{
    struct sqlite_store *s = SQLITE_OF(store);
    int64_t now = (int64_t)(how->now / 1000000000);
    int rc = sqlite_do(s, SQL_BEGIN, err);
    if (rc)
        return rc;
    if (how->keep)
        rc = drop_old(s, how, removed, err);
    if (!rc && how->max_bytes)
        rc = drop_large(s, how->max_bytes, &removed->recordings, err);
    if (!rc)
        rc = coarsen(s, now - now % 3600 - 86400, 3600, &removed->points, err);
    if (!rc)
        rc = coarsen(s, now - now % 86400 - 31 * 86400, 86400, &removed->points, err);
    if (!rc)
        rc = sqlite_do(s, SQL_COMMIT, err);
    if (rc)
        sqlite_do(s, SQL_ROLLBACK, &(struct error){0});
    return rc;
}
