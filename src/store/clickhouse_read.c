/* What ClickHouse holds of a job; see clickhouse.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/clickhouse_internal.h"

int clickhouse_ask(struct clickhouse *c, const char *sql, struct text *answer, struct row_reader *r,
                   struct error *err)
{
    struct text whole = TEXT_INIT;
    text_format(&whole, "%s FORMAT RowBinary", sql);
    *r = (struct row_reader){0};
    int rc = clickhouse_run(c, NULL, whole.data, answer, err);
    text_release(&whole);
    r->at = (const uint8_t *)answer->data;
    r->end = r->at + answer->len;
    return rc;
}

int clickhouse_finish(struct row_reader *r, struct text *answer, int rc, struct error *err)
{
    if (!rc && r->broken)
        rc = error_set(err, FAULT_INPUT, "ClickHouse's answer ends in the middle of a row");
    arena_release(&r->arena);
    text_release(answer);
    return rc;
}

void clickhouse_from(struct text *sql, const struct clickhouse *c, uint64_t uid,
                     enum clickhouse_kind kind, const char *columns, const char *where)
{
    /* Subqueries name the tables of the shard that answers, which has all of a job. */
    text_format(sql,
                " FROM (SELECT %s FROM %s WHERE uid = %" PRIu64 " AND kind = %d%s AND day NOT IN"
                " (SELECT day FROM %s.seals WHERE uid = %" PRIu64 ") AND insertion IN (SELECT"
                " min(insertion) FROM %s.parts WHERE uid = %" PRIu64 " AND kind = %d"
                " AND event = '' AND executable = '' AND name = batch GROUP BY batch)",
                columns, c->parts, uid, kind, where, c->database, uid, c->database, uid, KIND_KEY);
    text_format(sql,
                " UNION ALL SELECT %s FROM %s WHERE uid = %" PRIu64
                " AND kind = %d%s AND (day, roll)"
                " IN (SELECT day, min(roll) FROM %s.seals WHERE uid = %" PRIu64 " GROUP BY day))",
                columns, c->sums, uid, kind, where, c->database, uid);
}

/* info is "x" and two digits a byte, in quotes. */
static void take_default(struct job *job, uint64_t *uid, const char *column, const char *quoted)
{
    const char *value = *quoted == '\'' ? quoted + 1 : quoted;
    if (!strcmp(column, "uid"))
        *uid = strtoull(value, NULL, 10);
    else if (!strcmp(column, "created"))
        job->created = strtoull(value, NULL, 10);
    else if (!strcmp(column, "info") && *value == 'x') {
        size_t at = 0;
        for (value++; value[0] && value[1] && value[0] != '\'' && at < JOB_INFO_MAX; value += 2) {
            char digits[3] = {value[0], value[1], 0};
            job->info[at++] = (char)strtoul(digits, NULL, 16);
        }
        job->info[at] = 0;
    }
}

struct listed {
    struct job job;
    uint64_t uid;
};

struct listing {
    struct listed *data;
    size_t len, cap;
};

static struct listed *listed_of(struct listing *list, uint32_t id)
{
    for (size_t i = 0; i < list->len; i++)
        if (list->data[i].job.id == id)
            return &list->data[i];
    struct listed *fresh = vector_push(list);
    *fresh = (struct listed){.job = {.id = id}};
    return fresh;
}

/* Jobs by their tables: all, or the one named. */
static int read_jobs(struct clickhouse *c, uint32_t id, struct listing *out, struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    struct row_reader r;
    text_format(&sql,
                "SELECT toUInt32(substring(table, 5)) AS id, name, default_expression FROM"
                " system.columns WHERE database = '%s' AND ",
                c->database);
    if (id)
        text_format(&sql, "table = 'job_%u'", id);
    else
        text_add(&sql, "match(table, '^job_[0-9]{4}$') ORDER BY id");
    int rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    while (!rc && row_more(&r)) {
        struct listed *job = listed_of(out, (uint32_t)row_take(&r, 4));
        const char *column = row_take_text(&r, NULL);
        take_default(&job->job, &job->uid, column, row_take_text(&r, NULL));
        job->job.updated = job->job.created;
    }
    text_release(&sql);
    return clickhouse_finish(&r, &answer, rc, err);
}

/* When each was added to last, and how often. */
static int read_activity(struct clickhouse *c, struct listing *list, const char *which,
                         struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    struct row_reader r;
    text_format(&sql,
                "SELECT uid, max(time), uniqExactIf(name, substring(name, 1, 6) != 'moved:') FROM"
                " (SELECT uid, time, name FROM %s WHERE kind = %d%s"
                " UNION ALL SELECT uid, time, name FROM %s WHERE kind = %d%s) GROUP BY uid",
                c->parts, KIND_KEY, which, c->sums, KIND_KEY, which);
    int rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    while (!rc && row_more(&r)) {
        uint64_t uid = row_take(&r, 8), updated = row_take(&r, 8), batches = row_take(&r, 8);
        for (size_t i = 0; i < list->len; i++)
            if (list->data[i].uid == uid) {
                list->data[i].job.updated = updated;
                list->data[i].job.batches = batches;
            }
    }
    text_release(&sql);
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_job(struct clickhouse *c, uint32_t id, struct job *out, uint64_t *uid,
                   struct error *err)
{
    struct listing list = {0};
    int rc = read_jobs(c, id, &list, err);
    if (!rc && !list.len)
        rc = error_set(err, FAULT_MISSING, "there is no job %u", id);
    if (!rc) {
        *out = list.data[0].job;
        *uid = list.data[0].uid;
    }
    vector_release(&list);
    return rc;
}

int clickhouse_job_get(struct store *s, uint32_t id, struct job *out, struct error *err)
{
    struct listing list = {0};
    char which[64];
    int rc = read_jobs(CLICKHOUSE_OF(s), id, &list, err);
    if (!rc && !list.len)
        rc = error_set(err, FAULT_MISSING, "there is no job %u", id);
    if (!rc) {
        snprintf(which, sizeof which, " AND uid = %" PRIu64, list.data[0].uid);
        rc = read_activity(CLICKHOUSE_OF(s), &list, which, err);
    }
    if (!rc)
        *out = list.data[0].job;
    vector_release(&list);
    return rc;
}

int clickhouse_job_list(struct store *s, store_job_fn *fn, void *context, struct error *err)
{
    struct listing list = {0};
    int rc = read_jobs(CLICKHOUSE_OF(s), 0, &list, err);
    if (!rc && list.len)
        rc = read_activity(CLICKHOUSE_OF(s), &list, "", err);
    for (size_t i = 0; !rc && i < list.len; i++)
        rc = fn(context, &list.data[i].job, err);
    vector_release(&list);
    return rc;
}

/* SELECT `what` of all rows of a kind of a job that is there. */
static int ask_job(struct clickhouse *c, uint32_t id, enum clickhouse_kind kind, const char *what,
                   const char *columns, const char *where, const char *after, struct text *answer,
                   struct row_reader *r, struct error *err)
{
    struct text sql = TEXT_INIT;
    struct job job;
    uint64_t uid;
    *r = (struct row_reader){0};
    int rc = clickhouse_job(c, id, &job, &uid, err);
    if (rc)
        return rc;
    text_format(&sql, "SELECT %s", what);
    clickhouse_from(&sql, c, uid, kind, columns, where);
    text_format(&sql, " %s", after);
    rc = clickhouse_ask(c, sql.data, answer, r, err);
    text_release(&sql);
    return rc;
}

int clickhouse_events(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                      struct error *err)
{
    struct text answer = TEXT_INIT;
    struct row_reader r;
    int rc = ask_job(CLICKHOUSE_OF(s), job, KIND_POINT, "event, sum(value)", "event, value", "",
                     "GROUP BY event ORDER BY event", &answer, &r, err);
    while (!rc && row_more(&r)) {
        struct store_event e = {.name = row_take_text(&r, NULL)};
        e.value = (int64_t)row_take(&r, 8);
        rc = fn(context, &e, err);
    }
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_curve(struct store *s, uint32_t job, const char *event, store_point_fn *fn,
                     void *context, struct error *err)
{
    struct text answer = TEXT_INIT, where = TEXT_INIT;
    struct row_reader r;
    text_add(&where, " AND event = ");
    clickhouse_quote(&where, event);
    int rc = ask_job(CLICKHOUSE_OF(s), job, KIND_POINT, "time, sum(value)", "time, value",
                     where.data, "GROUP BY time ORDER BY time", &answer, &r, err);
    while (!rc && row_more(&r)) {
        struct store_point p = {.time = row_take(&r, 8)};
        p.value = (int64_t)row_take(&r, 8);
        rc = fn(context, &p, err);
    }
    text_release(&where);
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_bench(struct store *s, uint32_t job, store_bench_fn *fn, void *context,
                     struct error *err)
{
    struct text answer = TEXT_INIT;
    struct row_reader r;
    int rc = ask_job(CLICKHOUSE_OF(s), job, KIND_BENCH, "time, batch, host, name, data",
                     "time, batch, host, name, data, event", "", "ORDER BY time, batch, event",
                     &answer, &r, err);
    while (!rc && row_more(&r)) {
        struct store_bench b = {.time = row_take(&r, 8)};
        b.key = row_take_text(&r, NULL);
        b.host = row_take_text(&r, NULL);
        b.name = row_take_text(&r, NULL);
        b.json = row_take_text(&r, NULL);
        rc = fn(context, &b, err);
    }
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_recordings(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                          struct error *err)
{
    struct text answer = TEXT_INIT;
    struct row_reader r;
    int rc =
        ask_job(CLICKHOUSE_OF(s), job, KIND_RECORDING, "batch, name, host, time, value",
                "batch, name, host, time, value", "", "ORDER BY time, batch", &answer, &r, err);
    while (!rc && row_more(&r)) {
        struct store_recording found = {.key = row_take_text(&r, NULL)};
        found.name = row_take_text(&r, NULL);
        found.host = row_take_text(&r, NULL);
        found.time = row_take(&r, 8);
        found.size = row_take(&r, 8);
        rc = fn(context, &found, err);
    }
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_recording(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                         struct error *err)
{
    struct text answer = TEXT_INIT, where = TEXT_INIT;
    struct row_reader r;
    text_add(&where, " AND batch = ");
    clickhouse_quote(&where, key);
    int rc = ask_job(CLICKHOUSE_OF(s), job, KIND_RECORDING, "data", "data", where.data, "LIMIT 1",
                     &answer, &r, err);
    if (!rc && !row_more(&r))
        rc = error_set(err, FAULT_MISSING, "job %u has no recording %s", job, key);
    if (!rc) {
        const char *bytes = row_take_text(&r, size);
        *data = memory_dup(bytes, *size + 1);
    }
    text_release(&where);
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_keys(struct store *s, uint32_t job, store_key_fn *fn, void *context,
                    struct error *err)
{
    struct text answer = TEXT_INIT;
    struct row_reader r;
    int rc = ask_job(CLICKHOUSE_OF(s), job, KIND_KEY, "name, max(time)", "name, time", "",
                     "GROUP BY name", &answer, &r, err);
    while (!rc && row_more(&r)) {
        const char *key = row_take_text(&r, NULL);
        rc = fn(context, key, row_take(&r, 8), err);
    }
    return clickhouse_finish(&r, &answer, rc, err);
}
