/* Counts by function out of ClickHouse, all or the largest; see clickhouse.c. */
#include <inttypes.h>
#include <string.h>

#include "store/clickhouse_internal.h"

#define RANGES 8u
#define NUMBERS_MAX 20000 /* in one question: more are found by name at once */

static void count_where(const struct store_query *q, struct text *where)
{
    if (q->event) {
        text_add(where, " AND event = ");
        clickhouse_quote(where, q->event);
    }
    if (q->from_day)
        text_format(where, " AND day >= toDate(%u)", q->from_day);
    if (q->to_day)
        text_format(where, " AND day <= toDate(%u)", q->to_day);
}

static int take_count(struct row_reader *r, const struct store_query *q, store_count_fn *fn,
                      void *context, struct error *err)
{
    struct store_count count = {.kind = q->kind};
    count.day = (uint32_t)row_take(r, 2);
    count.event = row_take_text(r, NULL);
    count.executable = row_take_text(r, NULL);
    count.name = row_take_text(r, NULL);
    count.value = (int64_t)row_take(r, 8);
    int rc = r->broken ? 0 : fn(context, &count, err);
    if (r->arena.total > 1 << 20)
        arena_release(&r->arena);
    return rc;
}

/* Sums by function; a name that is the same in all rows need not be grouped by. */
static void ask_counts(struct text *sql, const struct clickhouse *c, uint64_t uid,
                       const struct store_query *q, const char *where)
{
    struct text columns = TEXT_INIT;
    text_add(sql, q->by_day ? "SELECT day, " : "SELECT toUInt16(0), ");
    if (q->event)
        clickhouse_quote(sql, q->event);
    else
        text_add(sql, "event");
    text_add(sql, ", executable, name, sum(value) AS total");
    text_format(&columns, "%s%sexecutable, name, value", q->by_day ? "day, " : "",
                q->event ? "" : "event, ");
    clickhouse_from(sql, c, uid, (enum clickhouse_kind)q->kind, columns.data, where);
    text_format(sql, " GROUP BY %sexecutable, name", q->event ? "" : "event, ");
    if (q->by_day)
        text_add(sql, ", day ORDER BY day");
    if (q->top)
        text_format(sql, " ORDER BY total DESC, name, executable LIMIT %zu", q->top);
    text_release(&columns);
}

/* What counts, as lists that many parts of one question can share. */
struct scope {
    struct text parts, sums; /* conditions of the two tables */
    bool sealed;             /* is there anything in `sums`? */
};

/* Insertions of a batch that was inserted twice, but for the first; usually there are none. */
static int find_doubles(struct clickhouse *c, uint64_t uid, struct text *where, struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    struct row_reader r;
    struct text keys = TEXT_INIT;
    text_format(&keys,
                "FROM %s.parts WHERE uid = %" PRIu64 " AND kind = %d AND event = ''"
                " AND executable = '' AND name = batch",
                c->database, uid, KIND_KEY);
    text_format(&sql,
                "SELECT insertion %s AND insertion NOT IN (SELECT min(insertion) %s"
                " GROUP BY batch)",
                keys.data, keys.data);
    text_release(&keys);
    int rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    text_add(where, " AND insertion NOT IN (0");
    bool any = !rc && row_more(&r);
    while (!rc && row_more(&r))
        text_format(where, ", %" PRIu64, row_take(&r, 8));
    text_add_char(where, ')');
    if (!any)
        text_clear(where);
    text_release(&sql);
    return clickhouse_finish(&r, &answer, rc, err);
}

static int find_seals(struct clickhouse *c, uint64_t uid, struct scope *out, struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT, open = TEXT_INIT;
    struct row_reader r;
    text_format(&sql, "SELECT day, min(roll) FROM %s.seals WHERE uid = %" PRIu64 " GROUP BY day",
                c->database, uid);
    int rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    while (!rc && row_more(&r)) {
        unsigned day = (unsigned)row_take(&r, 2);
        const char *between = out->sealed ? ", " : "";
        text_format(&open, "%stoDate(%u)", between, day);
        text_format(&out->sums, "%s(toDate(%u), %" PRIu64 ")",
                    out->sealed ? ", " : " AND (day, roll) IN (", day, row_take(&r, 8));
        out->sealed = true;
    }
    if (out->sealed) {
        text_add_char(&out->sums, ')');
        text_format(&out->parts, " AND day NOT IN (%s)", open.data);
    }
    text_release(&sql);
    text_release(&open);
    return clickhouse_finish(&r, &answer, rc, err);
}

/* The largest of those functions whose number is in one of the ranges. */
static void ask_range(struct text *sql, const struct clickhouse *c, uint64_t uid,
                      const struct store_query *q, const char *where, const struct scope *scope,
                      unsigned range)
{
    uint64_t width = UINT64_MAX / RANGES + 1, first = range * width;
    struct text of = TEXT_INIT;
    text_format(
        &of, " WHERE uid = %" PRIu64 " AND kind = %d%s AND node BETWEEN %" PRIu64 " AND %" PRIu64,
        uid, (int)q->kind, where, first, first + (width - 1));
    text_format(sql, "%sSELECT node, sum(value) AS total FROM ", range ? " UNION ALL " : "");
    if (scope->sealed)
        text_format(sql,
                    "(SELECT node, value FROM %s%s%s UNION ALL SELECT node, value FROM %s%s%s)",
                    c->parts, of.data, scope->parts.data, c->sums, of.data, scope->sums.data);
    else
        text_format(sql, "%s%s%s", c->parts, of.data, scope->parts.data);
    text_format(sql, " GROUP BY node ORDER BY total DESC LIMIT %zu", q->top);
    text_release(&of);
}

/*
 * The question for the numbers of the largest. Rows stand in the order of their numbers, so it is
 * asked in ranges of them: the engine's table of sums then fits into a cache, where that of a
 * million functions does not. One thread makes one such table; several would make one each and
 * merge them, which takes half as much CPU again. A batch that comes twice meanwhile can only let
 * something else be a candidate: what each has is asked for after that. Over shards each one sums
 * up for itself, by lists of its own.
 */
static int ask_largest(struct clickhouse *c, uint64_t uid, const struct store_query *q,
                       const char *where, struct text *sql, struct error *err)
{
    struct scope scope = {TEXT_INIT, TEXT_INIT, false};
    if (*c->url.cluster) {
        text_add(sql, "SELECT node");
        clickhouse_from(sql, c, uid, (enum clickhouse_kind)q->kind, "node, value", where);
        text_format(sql, " GROUP BY node ORDER BY sum(value) DESC LIMIT %zu", q->top);
        return 0;
    }
    int rc = find_doubles(c, uid, &scope.parts, err);
    if (!rc)
        rc = find_seals(c, uid, &scope, err);
    text_add(sql, "SELECT node FROM (");
    for (unsigned i = 0; !rc && i < RANGES; i++)
        ask_range(sql, c, uid, q, where, &scope, i);
    text_format(sql, ") ORDER BY total DESC LIMIT %zu SETTINGS max_threads = 1", q->top);
    text_release(&scope.parts);
    text_release(&scope.sums);
    return rc;
}

/* Narrows `where` to the numbers of the largest; their names are asked for after that. */
static int choose_largest(struct clickhouse *c, uint64_t uid, const struct store_query *q,
                          struct text *where, struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    struct row_reader r = {0};
    int rc = ask_largest(c, uid, q, where->data, &sql, err);
    if (!rc)
        rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    text_add(where, " AND node IN (0");
    while (!rc && row_more(&r))
        text_format(where, ", %" PRIu64, row_take(&r, 8));
    text_add_char(where, ')');
    text_release(&sql);
    return clickhouse_finish(&r, &answer, rc, err);
}

int clickhouse_counts(struct store *s, const struct store_query *q, store_count_fn *fn,
                      void *context, struct error *err)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    struct text sql = TEXT_INIT, where = TEXT_INIT, answer = TEXT_INIT;
    struct row_reader r = {0};
    struct job job;
    uint64_t uid;
    int rc = clickhouse_job(c, q->job, &job, &uid, err);
    if (rc)
        return rc;
    count_where(q, &where);
    if (q->top && q->top <= NUMBERS_MAX)
        rc = choose_largest(c, uid, q, &where, err);
    ask_counts(&sql, c, uid, q, where.data);
    if (!rc)
        rc = clickhouse_ask(c, sql.data, &answer, &r, err);
    while (!rc && row_more(&r))
        rc = take_count(&r, q, fn, context, err);
    text_release(&sql);
    text_release(&where);
    return clickhouse_finish(&r, &answer, rc, err);
}
