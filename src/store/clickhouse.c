/*
 * Jobs in ClickHouse, for fleets and history, within what version 18.16 knows: over HTTP, one
 * server or tables over shards.
 *
 * A job is a table of its own, job_2001, without rows: that it can be created once is the only
 * test-and-set there is. Its columns' defaults say what it is about, and a number (uid) that no
 * other job ever had, under which its rows stand.
 *
 * A batch is one insert of one block into `parts`, so it is there as a whole or not at all. Before,
 * its key is looked for. Should two servers insert the same batch at once, both are there, each
 * under an `insertion` of its own, and whoever reads counts the smallest insertion of a key. Days
 * that are over are summed up into `sums` (see clickhouse_retain.c).
 *
 * Rows stand in the order of `node`, a number made of executable and name by the engine: it sums
 * up a million numbers in a tenth of the time that as many names take.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "store/clickhouse_internal.h"

#define CODE_EXISTS 57
#define CODE_UNKNOWN_TABLE 60
#define BLOCK_ROWS 1000000u /* of one insert: more become several blocks */

#define COLUMNS                                                                                    \
    "(day Date, job UInt16, uid UInt64, kind UInt8, event String, executable String, name String," \
    " batch String, insertion UInt64, time UInt64, host String, value Int64, data String,"         \
    " node UInt64 DEFAULT cityHash64(executable, name)"

static int make_tables(struct clickhouse *c, const char *host, struct error *err)
{
    static const char *const tables[] = {
        "CREATE TABLE IF NOT EXISTS %s.parts " COLUMNS ") ENGINE = MergeTree PARTITION BY day"
        " ORDER BY (uid, kind, event, node) SETTINGS index_granularity = 1024",
        "CREATE TABLE IF NOT EXISTS %s.sums " COLUMNS ", roll UInt64) ENGINE ="
        " SummingMergeTree((value)) PARTITION BY day"
        " ORDER BY (uid, kind, event, node, executable, name, time, batch, roll)"
        " SETTINGS index_granularity = 1024",
        "CREATE TABLE IF NOT EXISTS %s.seals (day Date, uid UInt64, roll UInt64) ENGINE = MergeTree"
        " PARTITION BY tuple() ORDER BY (uid, day)",
    };
    struct text sql = TEXT_INIT;
    text_format(&sql, "CREATE DATABASE IF NOT EXISTS %s", c->database);
    int rc = clickhouse_run(c, host, sql.data, NULL, err);
    for (size_t i = 0; !rc && i < sizeof tables / sizeof *tables; i++) {
        text_clear(&sql);
        for (const char *at = tables[i]; *at; at++)
            if (at[0] == '%' && at[1] == 's')
                text_add(&sql, c->database), at++;
            else
                text_add_char(&sql, *at);
        rc = clickhouse_run(c, host, sql.data, NULL, err);
    }
    text_release(&sql);
    return rc;
}

/* Tables over all shards of the cluster that the server knows by that name. */
static int make_distributed(struct clickhouse *c, struct error *err)
{
    static const char *const names[] = {"parts", "sums"};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2; i++)
        rc = clickhouse_format(c, NULL, err,
                               "CREATE TABLE IF NOT EXISTS %s.all_%s AS %s.%s ENGINE ="
                               " Distributed(%s, %s, %s, job)",
                               c->database, names[i], c->database, names[i], c->url.cluster,
                               c->database, names[i]);
    return rc;
}

static bool is_name(const char *text)
{
    return *text &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
               strlen(text);
}

/* "host:port,host:port" */
static void split_hosts(struct clickhouse *c)
{
    struct text one = TEXT_INIT;
    char *copy = memory_strdup(c->url.host), *rest = copy;
    size_t count = 0;
    c->hosts = memory_array(strlen(copy) + 2, sizeof *c->hosts);
    for (char *host; (host = strsep(&rest, ","));) {
        text_clear(&one);
        text_add(&one, host);
        if (!strchr(host, ':'))
            text_format(&one, ":%u", c->url.port);
        c->hosts[count++] = memory_strdup(one.data);
    }
    free(copy);
    text_release(&one);
}

static void add_header(struct clickhouse *c, const char *name, const char *value)
{
    struct text line = TEXT_INIT;
    text_format(&line, "%s: %s", name, value);
    c->headers = curl_slist_append(c->headers, line.data);
    text_release(&line);
}

static void close_store(struct store *s)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    for (char **host = c->hosts; host && *host; host++)
        free(*host);
    free(c->hosts);
    free((char *)c->parts);
    free((char *)c->sums);
    curl_slist_free_all(c->headers);
    curl_easy_cleanup(c->curl);
    store_url_release(&c->url);
    free(c->database);
    free(c);
}

static char *table_name(const struct clickhouse *c, const char *name)
{
    struct text t = TEXT_INIT;
    text_format(&t, "%s.%s%s", c->database, *c->url.cluster ? "all_" : "", name);
    return text_take(&t);
}

static int set_up(struct clickhouse *c, struct error *err)
{
    int rc = 0;
    c->database = memory_strdup(*c->url.path ? c->url.path : "sonde");
    if (!is_name(c->database) || (*c->url.cluster && !is_name(c->url.cluster)))
        return error_set(err, FAULT_USAGE,
                         "names of a database and a cluster have letters, digits and _ only");
    split_hosts(c);
    c->parts = table_name(c, "parts");
    c->sums = table_name(c, "sums");
    c->curl = curl_easy_init();
    add_header(c, "Expect", "");
    if (*c->url.user)
        add_header(c, "X-ClickHouse-User", c->url.user);
    if (*c->url.password)
        add_header(c, "X-ClickHouse-Key", c->url.password);
    for (char **host = c->hosts; !rc && *host; host++)
        rc = make_tables(c, *host, err);
    if (!rc && *c->url.cluster)
        rc = make_distributed(c, err);
    return rc;
}

static int open_as(const char *url, bool tls, const struct store_ops *ops, struct store **out,
                   struct error *err)
{
    struct clickhouse *c = memory_alloc(sizeof *c);
    c->store.ops = ops;
    c->tls = tls;
    int rc = store_url_parse(url, tls ? 8443 : 8123, &c->url, err);
    if (!rc)
        rc = set_up(c, err);
    if (rc)
        close_store(&c->store);
    else
        *out = &c->store;
    return rc;
}

static int open_plain(const char *url, struct store **out, struct error *err)
{
    return open_as(url, false, &store_clickhouse, out, err);
}

static int open_tls(const char *url, struct store **out, struct error *err)
{
    return open_as(url, true, &store_clickhouses, out, err);
}

static int ping(struct store *s, struct error *err)
{
    return clickhouse_run(CLICKHOUSE_OF(s), NULL, "SELECT 1", NULL, err);
}

static uint64_t random_number(void)
{
    uint64_t n = 0;
    while (getrandom(&n, sizeof n, 0) != sizeof n || !n)
        ;
    return n;
}

static int job_create(struct store *s, struct job *job, struct error *err)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    bool any = !job->id;
    struct text info = TEXT_INIT;
    int rc = 0, code = 0;
    for (const char *at = job->info; *at; at++)
        text_format(&info, "%02X", (unsigned char)*at);
    do {
        rc = any ? store_next_free(s, &job->id, err) : 0;
        if (!rc)
            rc = clickhouse_format(c, NULL, err,
                                   "CREATE TABLE %s.job_%u (uid String DEFAULT '%" PRIu64
                                   "', created String DEFAULT '%" PRIu64
                                   "', info String DEFAULT 'x%s') ENGINE = Memory",
                                   c->database, job->id, random_number(), job->created, info.data);
        code = rc ? clickhouse_code(err) : 0;
    } while (any && code == CODE_EXISTS);
    text_release(&info);
    return code == CODE_EXISTS
               ? error_set(err, FAULT_USAGE, "job %u is there already; choose another number",
                           job->id)
               : rc;
}

int clickhouse_job_remove(struct store *s, uint32_t id, struct error *err)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    struct job job;
    uint64_t uid;
    struct text sql = TEXT_INIT;
    int rc = clickhouse_job(c, id, &job, &uid, err);
    if (!rc)
        rc = clickhouse_format(c, NULL, err, "DROP TABLE %s.job_%u", c->database, id);
    if (rc) {
        bool gone = clickhouse_code(err) == CODE_UNKNOWN_TABLE;
        return gone ? error_set(err, FAULT_MISSING, "there is no job %u", id) : rc;
    }
    /* Nobody can see its rows any more; they go when the engine finds the time. */
    static const char *const tables[] = {"parts", "sums"};
    for (char **host = c->hosts; *host; host++)
        for (size_t i = 0; i < 2; i++) {
            text_clear(&sql);
            text_format(&sql, "ALTER TABLE %s.%s DELETE WHERE uid = %" PRIu64, c->database,
                        tables[i], uid);
            clickhouse_run(c, *host, sql.data, NULL, &(struct error){0});
        }
    text_release(&sql);
    return 0;
}

struct row {
    enum clickhouse_kind kind;
    const char *event, *executable, *name;
    uint64_t time; /* 0: the batch's */
    int64_t value;
    const void *data;
    size_t size;
};

static void put_row(struct text *out, const struct batch *b, uint64_t uid, uint64_t insertion,
                    const struct row *r)
{
    row_u16(out, (uint16_t)store_day(b->time));
    row_u16(out, (uint16_t)b->job);
    row_u64(out, uid);
    row_u8(out, (uint8_t)r->kind);
    row_text(out, r->event, strlen(r->event));
    row_text(out, r->executable, strlen(r->executable));
    row_text(out, r->name, strlen(r->name));
    row_text(out, b->key, strlen(b->key));
    row_u64(out, insertion);
    row_u64(out, r->time ? r->time : b->time);
    row_text(out, b->host, strlen(b->host));
    row_u64(out, (uint64_t)r->value);
    row_text(out, r->data ? r->data : "", r->size);
}

static void put_batch(struct text *out, const struct batch *b, uint64_t uid)
{
    uint64_t insertion = random_number();
    char number[24];
    struct row key = {KIND_KEY, "", "", b->key, 0, 1, NULL, 0};
    put_row(out, b, uid, insertion, &key);
    for (size_t i = 0; i < b->counts.len; i++) {
        const struct batch_count *c = &b->counts.data[i];
        struct row r = {
            (enum clickhouse_kind)c->kind, c->event, c->executable, c->name, 0, c->value, NULL, 0};
        put_row(out, b, uid, insertion, &r);
    }
    for (size_t i = 0; i < b->points.len; i++) {
        const struct batch_point *p = &b->points.data[i];
        struct row r = {KIND_POINT, p->event, "", "", p->time, p->value, NULL, 0};
        put_row(out, b, uid, insertion, &r);
    }
    for (size_t i = 0; i < b->bench.len; i++) {
        snprintf(number, sizeof number, "%06zu", i);
        /* A row of zeros would be merged away. */
        struct row r = {KIND_BENCH,
                        number,
                        "",
                        b->bench.data[i].name,
                        0,
                        1,
                        b->bench.data[i].json,
                        strlen(b->bench.data[i].json)};
        put_row(out, b, uid, insertion, &r);
    }
    for (size_t i = 0; i < b->keys.len; i++) {
        struct row r = {KIND_KEY, "", "", b->keys.data[i].key, b->keys.data[i].time, 1, NULL, 0};
        put_row(out, b, uid, insertion, &r);
    }
    if (b->recording_name) {
        struct row r = {KIND_RECORDING,
                        "",
                        "",
                        b->recording_name,
                        0,
                        (int64_t)b->recording_size,
                        b->recording,
                        b->recording_size};
        put_row(out, b, uid, insertion, &r);
    }
}

static int is_known(struct clickhouse *c, uint64_t uid, const char *key, bool *known,
                    struct error *err)
{
    struct text sql = TEXT_INIT, answer = TEXT_INIT;
    const char *tables[] = {c->parts, c->sums};
    int rc = 0;
    *known = false;
    for (size_t i = 0; !rc && !*known && i < 2; i++) {
        text_clear(&sql);
        text_clear(&answer);
        text_format(&sql,
                    "SELECT count() FROM %s WHERE uid = %" PRIu64
                    " AND kind = %d AND event = '' AND node = cityHash64('', ",
                    tables[i], uid, KIND_KEY);
        clickhouse_quote(&sql, key);
        text_add(&sql, ") AND name = ");
        clickhouse_quote(&sql, key);
        rc = clickhouse_run(c, NULL, sql.data, &answer, err);
        *known = !rc && strtoul(answer.data, NULL, 10) > 0;
    }
    text_release(&sql);
    text_release(&answer);
    return rc;
}

static bool in_group(struct batch *const *batches, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (batches[i]->job == batches[at]->job && !strcmp(batches[i]->key, batches[at]->key))
            return true;
    return false;
}

/* Sends what has gathered; its batches, `from` to `to`, fare as it does. */
static int flush(struct clickhouse *c, struct text *rows, struct store_outcome *outcomes,
                 size_t from, size_t to, struct error *err)
{
    int rc = rows->len ? clickhouse_insert(c, c->parts, rows, err) : 0;
    for (size_t i = from; rc && i < to; i++)
        if (!outcomes[i].rc)
            outcomes[i] = (struct store_outcome){.rc = rc, .error = *err};
    text_clear(rows);
    return rc;
}

/* Batches that come together are one insert: the engine likes few and large ones. */
static int add(struct store *s, struct batch *const *batches, size_t count,
               struct store_outcome *outcomes, struct error *err)
{
    struct clickhouse *c = CLICKHOUSE_OF(s);
    struct text rows = TEXT_INIT;
    size_t from = 0, gathered = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++) {
        struct store_outcome *o = &outcomes[i];
        struct job job;
        uint64_t uid;
        *o = (struct store_outcome){0};
        o->rc = clickhouse_job(c, batches[i]->job, &job, &uid, &o->error);
        if (!o->rc)
            o->rc = is_known(c, uid, batches[i]->key, &o->duplicate, &o->error);
        if (o->rc == FAULT_SYSTEM) {
            rc = FAULT_SYSTEM;
            *err = o->error;
        }
        o->duplicate = o->duplicate || in_group(batches, i);
        if (o->rc || o->duplicate)
            continue;
        put_batch(&rows, batches[i], uid);
        gathered += batches[i]->counts.len;
        if (gathered > BLOCK_ROWS / 2) {
            rc = flush(c, &rows, outcomes, from, i + 1, err);
            from = i + 1;
            gathered = 0;
        }
    }
    if (!rc)
        rc = flush(c, &rows, outcomes, from, count, err);
    for (size_t i = from; rc && i < count; i++)
        outcomes[i] = (struct store_outcome){.rc = rc, .error = *err};
    text_release(&rows);
    return from ? 0 : rc;
}

#define OPS                                                                                        \
    .close = close_store, .ping = ping, .job_create = job_create, .job_get = clickhouse_job_get,   \
    .job_list = clickhouse_job_list, .job_remove = clickhouse_job_remove, .add = add,              \
    .counts = clickhouse_counts, .events = clickhouse_events, .curve = clickhouse_curve,           \
    .bench = clickhouse_bench, .recordings = clickhouse_recordings,                                \
    .recording = clickhouse_recording, .keys = clickhouse_keys, .retain = clickhouse_retain

const struct store_ops store_clickhouse = {.scheme = "clickhouse://", .open = open_plain, OPS};
const struct store_ops store_clickhouses = {.scheme = "clickhouses://", .open = open_tls, OPS};
