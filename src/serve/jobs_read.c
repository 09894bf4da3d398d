/* What a job holds: its table, curves, results, recordings, and the difference of two. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/jobs_export.h"
#include "serve/jobs_internal.h"
#include "serve/jobs_table.h"

#define SECONDS_MAX (4000000000ull)

static bool parse_query(struct http_request *q, uint32_t id, struct store_query *out)
{
    uint64_t top, from, to;
    if (!jobs_number(q, "top", 100000, 0, &top) || !jobs_number(q, "from", SECONDS_MAX, 0, &from) ||
        !jobs_number(q, "to", SECONDS_MAX, 0, &to))
        return false;
    *out = (struct store_query){.job = id,
                                .event = http_query(q, "event"),
                                .from_day = (uint32_t)(from / STORE_DAY),
                                .to_day = (uint32_t)(to / STORE_DAY),
                                .top = top};
    if (out->top && !out->event) {
        http_reply_error(q, 400, "the largest of what? Name an event with 'event'");
        return false;
    }
    return true;
}

static void send_table(struct http_request *q, uint32_t id, struct jobs_table *t,
                       const char *format)
{
    if (format && !strcmp(format, "csv")) {
        struct text out = TEXT_INIT;
        jobs_table_csv(t, &out);
        http_reply_text(q, 200, "text/csv; charset=utf-8", &out);
        text_release(&out);
        return;
    }
    struct json json;
    json_init(&json, NULL, NULL);
    json_open_object(&json);
    json_put_uint(&json, "job", id);
    jobs_table_json(t, &json);
    json_end(&json);
    jobs_send(q, 200, &json);
}

static void answer_table(struct http_request *q, struct jobs *j, const struct store_query *query,
                         const char *format)
{
    struct error err = {0};
    struct jobs_table t = {.max = j->rows_max};
    struct store *s = jobs_store(q, j);
    if (!s)
        return;
    int rc = store_counts(s, query, jobs_table_take, &t, &err);
    if (!rc) {
        jobs_table_sort(&t, false);
        send_table(q, query->job, &t, format);
    }
    jobs_close(q, j, s, rc, &err);
    jobs_table_release(&t);
}

void jobs_profile(struct http_request *q, void *context)
{
    uint32_t id;
    struct store_query query;
    const char *format = http_query(q, "format");
    if (!jobs_id(q, &id) || !parse_query(q, id, &query))
        return;
    if (!format || !*format || !strcmp(format, "json") || !strcmp(format, "csv"))
        answer_table(q, context, &query, format);
    else
        jobs_export_answer(q, context, &query, format, NULL);
}

static int put_point(void *context, const struct store_point *p, struct error *err)
{
    (void)err;
    json_open_array(context);
    json_uint(context, p->time);
    json_int(context, p->value);
    json_end(context);
    return 0;
}

void jobs_curve(struct http_request *q, void *context)
{
    uint32_t id;
    const char *event = http_query(q, "event");
    struct jobs_reply r;
    if (!jobs_id(q, &id))
        return;
    if (!event) {
        http_reply_error(q, 400, "the curve of what? Name an event with 'event'");
        return;
    }
    if (!jobs_begin(&r, q, context))
        return;
    json_put_uint(&r.json, "job", id);
    json_put_string(&r.json, "event", event);
    json_key(&r.json, "points");
    json_open_array(&r.json);
    jobs_end(&r, 200, r.store->ops->curve(r.store, id, event, put_point, &r.json, &r.error));
}

/* Which batch brought it, from where, and when. */
static void put_origin(struct json *json, uint64_t time, const char *key, const char *host,
                       const char *name)
{
    json_put_uint(json, "time", time);
    json_put_string(json, "key", key);
    json_put_string(json, "host", host);
    json_put_string(json, "name", name);
}

static int put_bench(void *context, const struct store_bench *b, struct error *err)
{
    (void)err;
    json_open_object(context);
    put_origin(context, b->time, b->key, b->host, b->name);
    json_key(context, "run");
    json_raw(context, b->json, strlen(b->json));
    json_end(context);
    return 0;
}

static int put_recording(void *context, const struct store_recording *r, struct error *err)
{
    (void)err;
    json_open_object(context);
    put_origin(context, r->time, r->key, r->host, r->name);
    json_put_uint(context, "size", r->size);
    json_end(context);
    return 0;
}

static void answer_list(struct http_request *q, struct jobs *j, bool bench)
{
    uint32_t id;
    struct jobs_reply r;
    if (!jobs_id(q, &id) || !jobs_begin(&r, q, j))
        return;
    json_put_uint(&r.json, "job", id);
    json_key(&r.json, bench ? "runs" : "recordings");
    json_open_array(&r.json);
    jobs_end(&r, 200,
             bench ? r.store->ops->bench(r.store, id, put_bench, &r.json, &r.error)
                   : r.store->ops->recordings(r.store, id, put_recording, &r.json, &r.error));
}

void jobs_bench(struct http_request *q, void *context)
{
    answer_list(q, context, true);
}

void jobs_recordings(struct http_request *q, void *context)
{
    answer_list(q, context, false);
}

void jobs_recording(struct http_request *q, void *context)
{
    uint32_t id;
    const char *key = http_param(q, "key");
    void *data = NULL;
    size_t size = 0;
    struct error err = {0};
    if (!jobs_id(q, &id))
        return;
    if (!key || !batch_key_valid(key)) {
        http_reply_error(q, 404, "that is no recording's key");
        return;
    }
    struct store *s = jobs_store(q, context);
    if (!s)
        return;
    int rc = s->ops->recording(s, id, key, &data, &size, &err);
    if (!rc)
        http_reply(q, 200, "application/octet-stream", data, size);
    jobs_close(q, context, s, rc, &err);
    free(data);
}

static int take_job(struct store *s, uint64_t id, struct store_query *query, struct jobs_table *t,
                    struct error *err)
{
    char column[16];
    snprintf(column, sizeof column, "%u", (unsigned)id);
    query->job = (uint32_t)id;
    t->column = column;
    names_add(&t->columns, column);
    int rc = store_counts(s, query, jobs_table_take, t, err);
    t->column = NULL;
    return rc;
}

void jobs_compare(struct http_request *q, void *context)
{
    struct jobs *j = context;
    uint64_t a, b;
    struct store_query query;
    struct error err = {0};
    struct jobs_table t = {.max = j->rows_max};
    if (!jobs_number(q, "a", JOB_LAST, 0, &a) || !jobs_number(q, "b", JOB_LAST, 0, &b) ||
        !parse_query(q, 0, &query))
        return;
    if (!query.event || a < JOB_FIRST || b < JOB_FIRST || a == b) {
        http_reply_error(q, 400, "compare two jobs: ?a=2001&b=2002&event=cpu");
        return;
    }
    struct store *s = jobs_store(q, j);
    if (!s)
        return;
    /* All of both: what is among the largest of one has its value in the other as well. */
    size_t top = query.top;
    query.top = 0;
    int rc = take_job(s, a, &query, &t, &err);
    if (!rc)
        rc = take_job(s, b, &query, &t, &err);
    if (!rc) {
        jobs_table_sort(&t, true);
        jobs_table_cut(&t, top);
        send_table(q, (uint32_t)a, &t, http_query(q, "format"));
    }
    jobs_close(q, j, s, rc, &err);
    jobs_table_release(&t);
}
