/*
 * What clients of Pyroscope send: POST /ingest?name=app.cpu{k=v}&from=…&until=…&format=…. The job
 * is that of the label or query `job`, else the one described as the application; if there is none,
 * it is made. A profile sent again is known by its content and interval.
 */
#include <string.h>

#include "base/memory.h"
#include "serve/jobs_internal.h"
#include "serve/pyroscope.h"
#include "serve/reading.h"

struct search {
    const char *info;
    uint32_t found;
};

static int match(void *context, const struct job *job, struct error *err)
{
    struct search *s = context;
    (void)err;
    if ((!s->found || job->id < s->found) && !strcmp(job->info, s->info))
        s->found = job->id;
    return 0;
}

/* Should two profiles of an application that is new come at once, both make a job for it: the
 * smaller number stays. */
static int make_job(struct store *s, struct jobs *j, struct search *wanted, struct error *err)
{
    struct job job = {0};
    snprintf(job.info, sizeof job.info, "%s", wanted->info);
    int rc = jobs_make(s, j, &job, err);
    if (!rc)
        rc = s->ops->job_list(s, match, wanted, err);
    if (!rc && wanted->found != job.id)
        rc = s->ops->job_remove(s, job.id, err);
    return rc;
}

/* The job that it was last, if that is still it; else all are looked through. */
static int look_up(struct store *s, struct jobs *j, struct search *wanted, uint32_t known,
                   struct error *err)
{
    struct job job;
    int rc = known ? s->ops->job_get(s, known, &job, err) : FAULT_MISSING;
    if (!rc)
        rc = match(wanted, &job, err);
    if ((!rc || rc == FAULT_MISSING) && !wanted->found)
        rc = s->ops->job_list(s, match, wanted, err);
    if (!rc && !wanted->found)
        rc = make_job(s, j, wanted, err);
    return rc;
}

/* While the engine is away, what is known from before will do: the journal takes the profile. */
static int find_job(struct jobs *j, struct pyroscope_app *app, struct error *err)
{
    struct search wanted = {.info = app->name};
    if (app->job)
        return 0;
    uint32_t known = applications_find(j->applications, app->name);
    struct store *s = ledger_borrow(j->ledger, err);
    int rc = s ? look_up(s, j, &wanted, known, err) : err->fault;
    if (s)
        ledger_return(j->ledger, s, rc == FAULT_SYSTEM);
    if (!rc)
        applications_note(j->applications, app->name, wanted.found);
    app->job = rc ? known : wanted.found;
    return rc == FAULT_SYSTEM && known ? 0 : rc;
}

static const struct format *format_of(struct http_request *q, const char *body, size_t len,
                                      bool *lines)
{
    const char *name = http_query(q, "format");
    *lines = name && !strcmp(name, "lines");
    if (!name || !*name || *lines || !strcmp(name, "folded") || !strcmp(name, "groups")) {
        bool pprof = len > 2 && (unsigned char)body[0] == 0x1f && (unsigned char)body[1] == 0x8b;
        return format_find(pprof ? "pprof" : "folded");
    }
    return !strcmp(name, "pprof") ? format_find("pprof") : NULL;
}

/* Names and units as sonde's own recordings have them: samples of the CPU are nanoseconds. */
static void adapt(struct batch *b, const struct pyroscope_app *app, const struct format *format,
                  uint64_t rate)
{
    bool folded = !strcmp(format->name, "folded");
    const char *executable = arena_strdup(&b->arena, app->name);
    const char *event = arena_strdup(&b->arena, *app->event ? app->event : "samples");
    bool time = !strcmp(event, "cpu") || !strcmp(event, "wall") || !strcmp(event, "itimer");
    for (size_t i = 0; i < b->counts.len; i++) {
        struct batch_count *c = &b->counts.data[i];
        c->executable = executable;
        if (!folded)
            continue;
        c->event = event;
        if (time && rate && c->value < BATCH_VALUE_MAX / 1000000000)
            c->value = (int64_t)((uint64_t)c->value * 1000000000 / rate);
    }
}

static int read_ingest(struct http_request *q, const struct pyroscope_app *app, uint64_t rate,
                       struct batch *b, struct error *err)
{
    size_t len;
    bool lines;
    const char *body = http_body(q, &len);
    pyroscope_unwrap(http_header(q, "content-type"), &body, &len);
    const struct format *format = format_of(q, body, len, &lines);
    if (!format)
        return error_set(err, FAULT_INPUT, "format '%s' is not taken: send folded, lines or pprof",
                         http_query(q, "format"));
    struct text counted = TEXT_INIT, place = TEXT_INIT;
    if (lines)
        pyroscope_count_lines(body, len, &counted);
    int rc = reading_batch(b, format, lines ? counted.data : body, lines ? counted.len : len, err);
    if (!rc)
        adapt(b, app, format, rate);
    const char *from = http_query(q, "from"), *until = http_query(q, "until");
    text_format(&place, "%s %s %s", http_query(q, "name"), from ? from : "", until ? until : "");
    b->key = reading_key(&b->arena, place.data, http_peer(q), body, len);
    text_release(&counted);
    text_release(&place);
    return rc;
}

void jobs_ingest(struct http_request *q, void *context)
{
    struct pyroscope_app app = {0};
    struct batch b = {0};
    struct error err = {0};
    uint64_t rate, job;
    const char *name = http_query(q, "name");
    if (!name || !*name) {
        http_reply_error(q, 400, "which application? Say ?name=app.cpu");
        return;
    }
    if (!jobs_number(q, "sampleRate", 1000000, 100, &rate) ||
        !jobs_number(q, "job", JOB_LAST, 0, &job))
        return;
    pyroscope_name(name, &app);
    app.job = job ? (uint32_t)job : app.job;
    if (find_job(context, &app, &err)) {
        jobs_refuse(q, &err);
        return;
    }
    int rc = read_ingest(q, &app, rate, &b, &err);
    if (rc) {
        http_reply_error(q, rc == FAULT_LIMIT ? 413 : 400, "%s", err.text);
        batch_release(&b);
        return;
    }
    b.job = app.job;
    b.host = arena_strdup(&b.arena, app.host);
    jobs_add(q, context, &b);
}
