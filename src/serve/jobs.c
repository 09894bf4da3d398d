/* Jobs themselves: the table of routes, list, create, show, remove; see jobs.h. */
#include "serve/jobs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/jobs_internal.h"

#define SMALL 65536 /* bytes of a request that only names things */

const struct http_route jobs_routes[] = {
    {HTTP_GET, "/api/jobs", HTTP_ROLE_READ, jobs_list, .threaded = true},
    {HTTP_POST, "/api/jobs", HTTP_ROLE_WRITE, jobs_create, .threaded = true, .body_max = SMALL},
    {HTTP_GET, "/api/jobs/live", HTTP_ROLE_READ, jobs_live, .threaded = false},
    {HTTP_GET, "/api/jobs/{id}", HTTP_ROLE_READ, jobs_show, .threaded = true},
    {HTTP_DELETE, "/api/jobs/{id}", HTTP_ROLE_WRITE, jobs_remove, .threaded = true},
    {HTTP_POST, "/api/jobs/{id}/batches", HTTP_ROLE_WRITE, jobs_push, .threaded = true},
    {HTTP_POST, "/api/jobs/{id}/profiles", HTTP_ROLE_WRITE, jobs_push_profile, .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/profile", HTTP_ROLE_READ, jobs_profile, .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/curve", HTTP_ROLE_READ, jobs_curve, .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/bench", HTTP_ROLE_READ, jobs_bench, .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/recordings", HTTP_ROLE_READ, jobs_recordings, .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/recordings/{key}", HTTP_ROLE_READ, jobs_recording, .threaded = true},
    {HTTP_GET, "/api/compare", HTTP_ROLE_READ, jobs_compare, .threaded = true},
    {HTTP_POST, "/ingest", HTTP_ROLE_WRITE, jobs_ingest, .threaded = true},
    {HTTP_GET, "/debug/pprof", HTTP_ROLE_READ, jobs_pprof_index, .threaded = true},
    {HTTP_GET, "/debug/pprof/{kind}", HTTP_ROLE_READ, jobs_pprof, .threaded = false},
    {HTTP_GET, "/metrics", HTTP_ROLE_READ, jobs_metrics, .threaded = true},
    {HTTP_GET, "/healthz", HTTP_ROLE_NONE, jobs_health, .threaded = true},
};

size_t jobs_route_count(void)
{
    return sizeof jobs_routes / sizeof *jobs_routes;
}

void jobs_refuse(struct http_request *q, const struct error *err)
{
    switch (err->fault) {
    case FAULT_LIMIT:
        http_reply_error(q, 507, "%s", err->text);
        return;
    case FAULT_SYSTEM:
        http_reply_header(q, "Retry-After", "5");
        http_reply_error(q, 503, "%s", err->text);
        return;
    case FAULT_INPUT:
        http_reply_error(q, 500, "%s", err->text);
        return;
    default:
        http_reply_fault(q, err);
    }
}

bool jobs_id(struct http_request *q, uint32_t *id)
{
    const char *text = http_param(q, "id");
    char *end = NULL;
    unsigned long n = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (!end || *end || n < JOB_FIRST || n > JOB_LAST) {
        http_reply_error(q, 404, "a job's number is from %u to %u", JOB_FIRST, JOB_LAST);
        return false;
    }
    *id = (uint32_t)n;
    return true;
}

bool jobs_number(struct http_request *q, const char *key, uint64_t max, uint64_t otherwise,
                 uint64_t *out)
{
    const char *text = http_query(q, key);
    *out = otherwise;
    if (!text || !*text)
        return true;
    char *end = NULL;
    unsigned long long n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (!end || *end || n > max) {
        http_reply_error(q, 400, "'%s' must be a whole number up to %llu", key,
                         (unsigned long long)max);
        return false;
    }
    *out = n;
    return true;
}

/* The path and all that changes what is read. */
static void question_of(const struct http_request *q, struct text *out)
{
    static const char *const keys[] = {"event", "top", "from", "to", "a", "b", "job", "format"};
    text_add(out, http_path(q));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *value = http_query(q, keys[i]);
        if (value)
            text_format(out, "\n%s=%s", keys[i], value);
    }
}

static bool is_reading(const struct http_request *q)
{
    return http_method(q) == HTTP_GET || http_method(q) == HTTP_HEAD;
}

static void keep_answer(struct http_request *q, struct jobs *j)
{
    struct text question = TEXT_INIT;
    const char *type, *data;
    size_t len;
    int status;
    if (!j->recall)
        return;
    if (http_method(q) == HTTP_DELETE) {
        recall_forget(j->recall);
    } else if (is_reading(q) && http_said(q, &status, &type, &data, &len) && status == 200) {
        question_of(q, &question);
        recall_keep(j->recall, question.data, type, data, len);
    }
    text_release(&question);
}

/* While the engine is away, what was answered before to the same question is said again. */
static bool answer_again(struct http_request *q, struct jobs *j)
{
    struct text question = TEXT_INIT, body = TEXT_INIT;
    uint64_t age = 0;
    char seconds[24];
    if (!j->recall || !is_reading(q))
        return false;
    question_of(q, &question);
    const char *type = recall_find(j->recall, question.data, &body, &age);
    if (type) {
        snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(age / 1000000000));
        http_reply_header(q, "Sonde-Stale", seconds);
        http_reply_text(q, 200, type, &body);
    }
    text_release(&question);
    text_release(&body);
    return type != NULL;
}

static bool is_gone(void *context)
{
    return http_gone(context);
}

static void fail(struct http_request *q, struct jobs *j, const struct error *err)
{
    if (err->fault != FAULT_SYSTEM || !answer_again(q, j))
        jobs_refuse(q, err);
}

struct store *jobs_store(struct http_request *q, struct jobs *j)
{
    struct error err = {0};
    struct store *s = ledger_borrow(j->ledger, &err);
    if (!s)
        fail(q, j, &err);
    else if (is_reading(q))
        s->patience =
            (struct store_patience){.until = j->query_time ? clock_now() + j->query_time : 0,
                                    .gone = is_gone,
                                    .context = q};
    return s;
}

void jobs_close(struct http_request *q, struct jobs *j, struct store *s, int rc,
                const struct error *err)
{
    ledger_return(j->ledger, s, rc == FAULT_SYSTEM || rc == FAULT_INPUT);
    if (rc)
        fail(q, j, err);
    else
        keep_answer(q, j);
}

void jobs_send(struct http_request *q, int status, struct json *json)
{
    json_finish(json);
    text_add_char(&json->out, '\n');
    http_reply_text(q, status, "application/json", &json->out);
    json_release(json);
}

bool jobs_begin(struct jobs_reply *r, struct http_request *q, struct jobs *j)
{
    *r = (struct jobs_reply){.request = q, .jobs = j, .store = jobs_store(q, j)};
    if (!r->store)
        return false;
    json_init(&r->json, NULL, NULL);
    json_open_object(&r->json);
    return true;
}

void jobs_end(struct jobs_reply *r, int status, int rc)
{
    while (r->json.depth)
        json_end(&r->json);
    if (rc)
        json_release(&r->json);
    else
        jobs_send(r->request, status, &r->json);
    jobs_close(r->request, r->jobs, r->store, rc, &r->error);
}

static void put_job(struct json *json, const struct job *job)
{
    json_put_uint(json, "id", job->id);
    json_put_string(json, "info", job->info);
    json_put_uint(json, "created", job->created);
    json_put_uint(json, "updated", job->updated);
    json_put_uint(json, "batches", job->batches);
}

static int list_job(void *context, const struct job *job, struct error *err)
{
    (void)err;
    json_open_object(context);
    put_job(context, job);
    json_end(context);
    return 0;
}

void jobs_list(struct http_request *q, void *context)
{
    struct jobs_reply r;
    if (!jobs_begin(&r, q, context))
        return;
    json_key(&r.json, "jobs");
    json_open_array(&r.json);
    jobs_end(&r, 200, r.store->ops->job_list(r.store, list_job, &r.json, &r.error));
}

static int parse_job(struct http_request *q, struct job *job, struct error *err)
{
    size_t len;
    const char *body = http_body(q, &len);
    json_error_t bad;
    json_t *root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &bad);
    const json_t *id = json_object_get(root, "id"), *info = json_object_get(root, "info");
    int rc = 0;
    if (!json_is_object(root))
        rc = error_set(err, FAULT_USAGE, "the request must be an object like {\"info\": \"…\"}");
    else if (id && !json_is_null(id) &&
             (!json_is_integer(id) || json_integer_value(id) < JOB_FIRST ||
              json_integer_value(id) > JOB_LAST))
        rc = error_set(err, FAULT_USAGE, "\"id\" must be a whole number from %u to %u", JOB_FIRST,
                       JOB_LAST);
    else if (info && (!json_is_string(info) || json_string_length(info) > JOB_INFO_MAX ||
                      strlen(json_string_value(info)) != json_string_length(info)))
        rc = error_set(err, FAULT_USAGE, "\"info\" must be a text of at most %d bytes",
                       JOB_INFO_MAX);
    else {
        job->id = json_is_integer(id) ? (uint32_t)json_integer_value(id) : 0;
        snprintf(job->info, sizeof job->info, "%s", info ? json_string_value(info) : "");
    }
    json_decref(root);
    return rc;
}

static int count_job(void *context, const struct job *job, struct error *err)
{
    (void)job;
    (void)err;
    ++*(unsigned *)context;
    return 0;
}

int jobs_make(struct store *s, struct jobs *j, struct job *job, struct error *err)
{
    unsigned count = 0;
    int rc = s->ops->job_list(s, count_job, &count, err);
    if (rc)
        return rc;
    if (count >= ledger_jobs_max(j->ledger))
        return error_set(err, FAULT_LIMIT, "there are %u jobs, as many as are allowed (--jobs-max)",
                         count);
    job->created = clock_wall();
    return store_job_create(s, job, err);
}

void jobs_create(struct http_request *q, void *context)
{
    struct error err = {0};
    struct job job = {0};
    struct jobs_reply r;
    if (parse_job(q, &job, &err)) {
        http_reply_fault(q, &err);
        return;
    }
    if (!jobs_begin(&r, q, context))
        return;
    int rc = jobs_make(r.store, context, &job, &r.error);
    put_job(&r.json, &job);
    jobs_end(&r, 201, rc);
    if (rc == FAULT_USAGE)
        http_reply_error(q, 409, "%s", r.error.text);
}

static int list_event(void *context, const struct store_event *e, struct error *err)
{
    (void)err;
    json_open_object(context);
    json_put_string(context, "name", e->name);
    json_put_int(context, "value", e->value);
    json_end(context);
    return 0;
}

void jobs_show(struct http_request *q, void *context)
{
    uint32_t id;
    struct jobs_reply r;
    struct job job;
    if (!jobs_id(q, &id) || !jobs_begin(&r, q, context))
        return;
    int rc = r.store->ops->job_get(r.store, id, &job, &r.error);
    if (!rc) {
        put_job(&r.json, &job);
        json_key(&r.json, "events");
        json_open_array(&r.json);
        rc = r.store->ops->events(r.store, id, list_event, &r.json, &r.error);
    }
    jobs_end(&r, 200, rc);
}

void jobs_remove(struct http_request *q, void *context)
{
    uint32_t id;
    struct store *s = jobs_id(q, &id) ? jobs_store(q, context) : NULL;
    struct error err = {0};
    if (!s)
        return;
    int rc = s->ops->job_remove(s, id, &err);
    if (!rc)
        http_reply(q, 204, "application/json", "", 0);
    jobs_close(q, context, s, rc, &err);
}
