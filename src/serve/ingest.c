/*
 * What clients of Pyroscope send: POST /ingest?name=app.cpu{k=v}&from=…&until=…&format=…. The job
 * is that of the label or query `job`, else the one described as the application; if there is none,
 * it is made. A profile sent again is known by its content and interval.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/jobs_internal.h"
#include "serve/reading.h"

struct app {
    char name[256]; /* without labels and event */
    char event[64]; /* "cpu", "" if it is not said */
    char host[256]; /* of the labels hostname, host, instance or pod */
    uint32_t job;   /* 0: by name */
};

static void copy_part(char *to, size_t size, const char *from, size_t len)
{
    len = len < size ? len : size - 1;
    memcpy(to, from, len);
    to[len] = 0;
}

static void take_label(struct app *app, const char *label, size_t len)
{
    static const char *const hosts[] = {"hostname", "host", "instance", "pod"};
    const char *equals = memchr(label, '=', len);
    if (!equals)
        return;
    size_t key = (size_t)(equals - label);
    const char *value = equals + 1;
    size_t value_len = len - key - 1;
    if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
        value++;
        value_len -= 2;
    }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strlen(hosts[i]) == key && !memcmp(hosts[i], label, key))
            copy_part(app->host, sizeof app->host, value, value_len);
    if (key == 3 && !memcmp(label, "job", 3))
        app->job = (uint32_t)strtoul(value, NULL, 10);
}

/* "app.cpu{host=web1,job=2001}" */
static void parse_name(const char *text, struct app *app)
{
    static const char *const events[] = {"cpu",           "alloc_objects", "alloc_space",
                                         "inuse_objects", "inuse_space",   "goroutines",
                                         "itimer",        "wall",          "lock_count"};
    const char *labels = strchrnul(text, '{');
    copy_part(app->name, sizeof app->name, text, (size_t)(labels - text));
    char *dot = strrchr(app->name, '.');
    for (size_t i = 0; dot && i < sizeof events / sizeof *events; i++)
        if (!strcmp(dot + 1, events[i])) {
            copy_part(app->event, sizeof app->event, dot + 1, strlen(dot + 1));
            *dot = 0;
            break;
        }
    while (*labels && *labels != '}') {
        labels++;
        size_t len = strcspn(labels, ",}");
        take_label(app, labels, len);
        labels += len;
    }
}

struct search {
    const char *info;
    uint32_t found;
};

static int match(void *context, const struct job *job, struct error *err)
{
    struct search *s = context;
    (void)err;
    if (!s->found && !strcmp(job->info, s->info))
        s->found = job->id;
    return 0;
}

static int find_job(struct jobs *j, struct app *app, struct error *err)
{
    struct search wanted = {.info = app->name};
    if (app->job)
        return 0;
    struct store *s = ledger_borrow(j->ledger, err);
    if (!s)
        return err->fault;
    int rc = s->ops->job_list(s, match, &wanted, err);
    if (!rc && !wanted.found) {
        struct job job = {.created = clock_wall()};
        snprintf(job.info, sizeof job.info, "%s", app->name);
        rc = store_job_create(s, &job, err);
        wanted.found = job.id;
    }
    ledger_return(j->ledger, s, rc == FAULT_SYSTEM);
    app->job = wanted.found;
    return rc;
}

/* The part "profile" of a form, if the body is one. */
static void unwrap_form(struct http_request *q, const char **body, size_t *len)
{
    const char *type = http_header(q, "content-type");
    const char *mark =
        type && strstr(type, "multipart/form-data") ? strstr(type, "boundary=") : NULL;
    if (!mark)
        return;
    struct text edge = TEXT_INIT;
    mark += strlen("boundary=");
    text_add(&edge, "--");
    text_add_len(&edge, mark + (*mark == '"'), strcspn(mark + (*mark == '"'), "\";"));
    const char *end = *body + *len, *at = memmem(*body, *len, edge.data, edge.len);
    while (at) {
        const char *head = at + edge.len;
        const char *data = memmem(head, (size_t)(end - head), "\r\n\r\n", 4);
        const char *next = data ? memmem(data, (size_t)(end - data), edge.data, edge.len) : NULL;
        if (!next)
            break;
        if (memmem(head, (size_t)(data - head), "name=\"profile\"", 14)) {
            *body = data + 4;
            *len = next - 2 > data + 4 ? (size_t)(next - 2 - (data + 4)) : 0;
            break;
        }
        at = next;
    }
    text_release(&edge);
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

/* A stack a line, each counted once: as folded text. */
static void count_lines(const char *body, size_t len, struct text *out)
{
    const char *end = body + len;
    while (body < end) {
        const char *stop = memchr(body, '\n', (size_t)(end - body));
        stop = stop ? stop : end;
        if (stop > body) {
            text_add_len(out, body, (size_t)(stop - body));
            text_add(out, " 1\n");
        }
        body = stop + 1;
    }
}

/* Names and units as sonde's own recordings have them: samples of the CPU are nanoseconds. */
static void adapt(struct batch *b, const struct app *app, const struct format *format,
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

static int read_ingest(struct http_request *q, const struct app *app, uint64_t rate,
                       struct batch *b, struct error *err)
{
    size_t len;
    bool lines;
    const char *body = http_body(q, &len);
    unwrap_form(q, &body, &len);
    const struct format *format = format_of(q, body, len, &lines);
    if (!format)
        return error_set(err, FAULT_INPUT, "format '%s' is not taken: send folded, lines or pprof",
                         http_query(q, "format"));
    struct text counted = TEXT_INIT, place = TEXT_INIT;
    if (lines)
        count_lines(body, len, &counted);
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
    struct app app = {0};
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
    parse_name(name, &app);
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
