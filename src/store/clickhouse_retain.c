/*
 * What ClickHouse sums up and lets go of. A day that has been over for two is copied into `sums`,
 * where equal rows add up; then `seals` says for each job that this copy counts, then the day's
 * partition of `parts` is dropped. Cut short anywhere, or done by two servers at once, the day
 * counts once: rows of `parts` count until the day is sealed, and of several copies the one with
 * the smallest `roll`.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "store/clickhouse_internal.h"

#define OPEN_DAYS 2
#define DELETION_TURNS 100

/* First column of the answer to a question, line by line. */
static int numbers(struct clickhouse *c, const char *host, const char *sql, struct text *answer,
                   struct error *err)
{
    text_clear(answer);
    return clickhouse_run(c, host, sql, answer, err);
}

static int run(struct clickhouse *c, const char *host, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int run(struct clickhouse *c, const char *host, struct error *err, const char *format, ...)
{
    struct text sql = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&sql, format, args);
    va_end(args);
    int rc = clickhouse_run(c, host, sql.data, NULL, err);
    text_release(&sql);
    return rc;
}

static int seal_day(struct clickhouse *c, const char *host, unsigned long day, struct error *err)
{
    const char *db = c->database;
    uint64_t roll = 0;
    while (getrandom(&roll, sizeof roll, 0) != sizeof roll)
        ;
    /* Counts and points lose their batch and add up; of the rest, every row is kept. */
    int rc = run(c, host, err,
                 "INSERT INTO %s.sums (" CLICKHOUSE_COLUMNS
                 ", roll) SELECT day, job, uid, kind, event, executable, name,"
                 " if(kind < 3, '', batch) AS b, if(kind < 3, 0, insertion) AS i,"
                 " multiIf(kind < 2, 0, kind = 2, intDiv(time, 3600) * 3600, time) AS t,"
                 " if(kind < 3, '', host) AS h, sum(value), any(data), %" PRIu64 " FROM %s.parts"
                 " WHERE day = toDate(%lu) AND insertion IN (SELECT min(insertion) FROM %s.parts"
                 " WHERE kind = %d AND name = batch GROUP BY uid, batch)"
                 " GROUP BY day, job, uid, kind, event, executable, name, b, i, t, h",
                 db, roll, db, day, db, KIND_KEY);
    if (!rc)
        rc = run(c, host, err,
                 "INSERT INTO %s.seals SELECT DISTINCT day, uid, roll FROM %s.sums WHERE"
                 " day = toDate(%lu) AND roll = %" PRIu64,
                 db, db, day, roll);
    if (!rc)
        rc = run(c, host, err, "ALTER TABLE %s.parts DROP PARTITION toDate(%lu)", db, day);
    return rc;
}

/* Days of a table before `before`, each handed to `fn`. */
static int each_day(struct clickhouse *c, const char *host, const char *table, uint32_t before,
                    int (*fn)(struct clickhouse *c, const char *host, unsigned long day,
                              struct error *err),
                    struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    text_format(&sql, "SELECT DISTINCT toUInt32(day) FROM %s.%s WHERE day < toDate(%u)",
                c->database, table, before);
    int rc = numbers(c, host, sql.data, &answer, err);
    for (char *at = answer.data, *end; !rc && *at; at = end + (*end == '\n')) {
        unsigned long day = strtoul(at, &end, 10);
        if (end == at)
            break;
        rc = fn(c, host, day, err);
    }
    text_release(&sql);
    text_release(&answer);
    return rc;
}

static int drop_part(struct clickhouse *c, const char *host, unsigned long day, struct error *err)
{
    return run(c, host, err, "ALTER TABLE %s.parts DROP PARTITION toDate(%lu)", c->database, day);
}

static int drop_sum(struct clickhouse *c, const char *host, unsigned long day, struct error *err)
{
    return run(c, host, err, "ALTER TABLE %s.sums DROP PARTITION toDate(%lu)", c->database, day);
}

static int count(struct clickhouse *c, uint64_t *out, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int count(struct clickhouse *c, uint64_t *out, struct error *err, const char *format, ...)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_vformat(&sql, format, args);
    va_end(args);
    int rc = clickhouse_run(c, NULL, sql.data, &answer, err);
    if (!rc)
        *out += strtoull(answer.data, NULL, 10);
    text_release(&sql);
    text_release(&answer);
    return rc;
}

/* Rows of jobs that are gone may still be there for a while; they are nobody's. The first host
 * alone knows which jobs there are, so they are named one by one. */
static int of_living(struct text *out, struct clickhouse *c, struct error *err)
{
    struct text answer = TEXT_INIT;
    int rc =
        clickhouse_format(c, &answer, err,
                          "SELECT replaceAll(default_expression, '\\'', '') FROM system.columns"
                          " WHERE database = '%s' AND name = 'uid' AND table LIKE 'job%%'",
                          c->database);
    text_add(out, " AND uid IN (0");
    for (const char *at = answer.data; !rc && *at; at += strcspn(at, "\n") + 1)
        text_format(out, ", %" PRIu64, (uint64_t)strtoull(at, NULL, 10));
    text_add_char(out, ')');
    text_release(&answer);
    return rc;
}

/* Partitions go as wholes: what is of the day of the cut stays another day. */
static int drop_old(struct clickhouse *c, uint32_t day, struct store_removed *removed,
                    struct error *err)
{
    int rc = 0;
    const char *tables[] = {c->parts, c->sums};
    for (size_t i = 0; !rc && i < 2; i++) {
        rc = count(c, &removed->recordings, err,
                   "SELECT count() FROM %s WHERE kind = %d AND day < toDate(%u)", tables[i],
                   KIND_RECORDING, day);
        if (!rc)
            rc =
                count(c, &removed->counts, err,
                      "SELECT count() FROM %s WHERE kind < 2 AND day < toDate(%u)", tables[i], day);
    }
    for (char **host = c->hosts; !rc && *host; host++) {
        rc = each_day(c, *host, "parts", day, drop_part, err);
        if (!rc)
            rc = each_day(c, *host, "sums", day, drop_sum, err);
    }
    return rc;
}

struct idle {
    uint64_t cut;
    VECTOR(uint32_t) ids;
};

static int note_idle(void *context, const struct job *job, struct error *err)
{
    struct idle *idle = context;
    (void)err;
    if (job->updated < idle->cut)
        *vector_push(&idle->ids) = job->id;
    return 0;
}

/* The engine deletes when it finds the time; we give it some, so that what was let go is gone. */
static int wait_for_deletions(struct clickhouse *c, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    char **host = c->hosts;
    int rc = 0;
    text_format(&sql, "SELECT count() FROM system.mutations WHERE database = '%s' AND NOT is_done",
                c->database);
    for (int i = 0; !rc && *host && i < DELETION_TURNS; i++) {
        rc = numbers(c, *host, sql.data, &answer, err);
        if (!rc && strtoul(answer.data, NULL, 10))
            nanosleep(&pause, NULL);
        else
            host++;
    }
    text_release(&sql);
    text_release(&answer);
    return rc;
}

/* The rows of the oldest recordings, by the engine's own way of deleting some. */
static int drop_large(struct clickhouse *c, uint64_t max_bytes, struct store_removed *removed,
                      struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT, living = TEXT_INIT;
    uint64_t sum = 0, cut = 0;
    int rc = of_living(&living, c, err);
    text_format(&sql,
                "SELECT time, value FROM (SELECT time, value FROM %s WHERE kind = %d%s UNION ALL"
                " SELECT time, value FROM %s WHERE kind = %d%s) ORDER BY time DESC",
                c->parts, KIND_RECORDING, living.data, c->sums, KIND_RECORDING, living.data);
    text_release(&living);
    if (!rc)
        rc = numbers(c, NULL, sql.data, &answer, err);
    for (char *at = answer.data, *end; !rc && *at; at = end + (*end == '\n')) {
        uint64_t time = strtoull(at, &end, 10);
        sum += strtoull(end, &end, 10);
        if (sum > max_bytes) {
            cut = cut ? cut : time;
            removed->recordings++;
        }
    }
    static const char *const tables[] = {"parts", "sums"};
    for (char **host = c->hosts; !rc && cut && *host; host++)
        for (size_t i = 0; !rc && i < 2; i++)
            rc = run(c, *host, err, "ALTER TABLE %s.%s DELETE WHERE kind = %d AND time <= %" PRIu64,
                     c->database, tables[i], KIND_RECORDING, cut);
    text_release(&sql);
    text_release(&answer);
    return rc || !cut ? rc : wait_for_deletions(c, err);
}

int clickhouse_retain(struct store *s, const struct store_retention *how,
                      struct store_removed *removed, struct error *err)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    struct idle idle = {.cut = how->now > how->keep ? how->now - how->keep : 0};
    int rc = 0;
    if (how->keep) {
        rc = clickhouse_job_list(s, note_idle, &idle, err);
        for (size_t i = 0; !rc && i < idle.ids.len; i++) {
            if (!store_job_idle(s, idle.ids.data[i], idle.cut))
                continue;
            rc = clickhouse_job_remove(s, idle.ids.data[i], err);
            removed->jobs += rc == 0;
            rc = rc == FAULT_MISSING ? 0 : rc; /* another server was faster */
        }
        if (!rc)
            rc = drop_old(c, store_day(idle.cut), removed, err);
    }
    if (!rc && how->max_bytes)
        rc = drop_large(c, how->max_bytes, removed, err);
    uint32_t today = store_day(how->now);
    for (char **host = c->hosts; !rc && *host; host++)
        rc = each_day(c, *host, "parts", today - OPEN_DAYS, seal_day, err);
    vector_release(&idle.ids);
    return rc;
}
