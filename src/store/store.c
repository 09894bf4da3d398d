/* The way to an engine, and what must hold whichever it is; see store.h. */
#include "store/store.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store_internal.h"

#define ROWS_BETWEEN_LOOKS 512

static const struct store_ops *const engines[] = {&store_sqlite, &store_rediss, &store_redis,
                                                  &store_clickhouses, &store_clickhouse};

int store_open(const char *url, struct store **out, struct error *err)
{
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (text_starts(url, engines[i]->scheme))
            return engines[i]->open(url, out, err);
    struct text safe = TEXT_INIT;
    store_url_safe(url, &safe);
    error_set(err, FAULT_USAGE,
              "'%s' is no store: use sqlite:PATH, redis://HOST[:PORT] or clickhouse://HOST[:PORT]",
              safe.data);
    text_release(&safe);
    return FAULT_USAGE;
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

void store_url_safe(const char *url, struct text *out)
{
    const char *host = strstr(url, "://");
    const char *at = host ? strrchr(host, '@') : NULL;
    if (!at) {
        text_add_printable(out, url);
        return;
    }
    char *scheme = memory_strndup(url, (size_t)(host + 3 - url));
    text_add_printable(out, scheme);
    text_add(out, "…");
    text_add_printable(out, at);
    free(scheme);
}

static const char *unescaped(struct arena *a, const char *text, size_t len)
{
    char *out = arena_strndup(a, text, len);
    char *to = out;
    for (size_t i = 0; i < len; i++, to++) {
        if (text[i] == '%' && i + 2 < len + 0 && isxdigit((unsigned char)text[i + 1]) &&
            isxdigit((unsigned char)text[i + 2])) {
            char digits[3] = {text[i + 1], text[i + 2], 0};
            *to = (char)strtoul(digits, NULL, 16);
            i += 2;
        } else {
            *to = text[i];
        }
    }
    *to = 0;
    return out;
}

static const char *query_value(struct arena *a, const char *query, const char *name)
{
    size_t len = strlen(name);
    while (query && *query) {
        const char *end = strchrnul(query, '&');
        if (!strncmp(query, name, len) && query[len] == '=')
            return unescaped(a, query + len + 1, (size_t)(end - query) - len - 1);
        query = *end ? end + 1 : end;
    }
    return "";
}

static int parse_host(struct store_url *u, const char *start, const char *end, struct error *err)
{
    const char *host_end = end;
    if (start < end && *start == '[') {
        host_end = memchr(start, ']', (size_t)(end - start));
        if (!host_end)
            return error_set(err, FAULT_USAGE, "the store's address has a [ without ]");
        start++;
    } else if (memchr(start, ',', (size_t)(end - start))) {
        u->host = arena_strndup(&u->arena, start, (size_t)(end - start)); /* several, as they are */
        return 0;
    } else {
        const char *colon = memrchr(start, ':', (size_t)(end - start));
        host_end = colon ? colon : end;
    }
    u->host = host_end > start ? arena_strndup(&u->arena, start, (size_t)(host_end - start))
                               : "127.0.0.1";
    const char *port = host_end < end && *host_end == ']' ? host_end + 1 : host_end;
    if (port == end)
        return 0;
    char *stop;
    unsigned long number = *port == ':' ? strtoul(port + 1, &stop, 10) : 0;
    if (!number || number > 65535 || stop != end)
        return error_set(err, FAULT_USAGE, "the store's address has no port from 1 to 65535 in it");
    u->port = (unsigned)number;
    return 0;
}

int store_url_parse(const char *url, unsigned port, struct store_url *out, struct error *err)
{
    *out = (struct store_url){.user = "", .password = "", .path = "", .port = port};
    const char *start = strstr(url, "://") + 3;
    const char *query = strchr(start, '?');
    const char *end = query ? query : start + strlen(start);
    const char *path = memchr(start, '/', (size_t)(end - start));
    const char *host_end = path ? path : end;
    const char *at = memrchr(start, '@', (size_t)(host_end - start));
    if (at) {
        const char *colon = memchr(start, ':', (size_t)(at - start));
        const char *user_end = colon ? colon : at;
        out->user = unescaped(&out->arena, start, (size_t)(user_end - start));
        if (colon)
            out->password = unescaped(&out->arena, colon + 1, (size_t)(at - colon) - 1);
        start = at + 1;
    }
    if (path)
        out->path = unescaped(&out->arena, path + 1, (size_t)(end - path) - 1);
    out->cluster = query_value(&out->arena, query ? query + 1 : NULL, "cluster");
    out->ca = query_value(&out->arena, query ? query + 1 : NULL, "ca");
    return parse_host(out, start, host_end, err);
}

void store_url_release(struct store_url *u)
{
    arena_release(&u->arena);
}

uint64_t store_point_width(uint64_t age)
{
    return age < 86400 ? STORE_MINUTE : age < 31 * 86400 ? 3600 : STORE_DAY;
}

uint64_t store_point_start(uint64_t time, uint64_t now)
{
    uint64_t width = store_point_width(now > time ? now - time : 0);
    return time - time % width;
}

struct free_number {
    uint32_t last, gap; /* largest taken; first that is free after 2000 */
};

static int note_number(void *context, const struct job *job, struct error *err)
{
    struct free_number *f = context;
    (void)err;
    f->last = job->id;
    if (f->gap == job->id)
        f->gap++;
    return 0;
}

int store_next_free(struct store *s, uint32_t *id, struct error *err)
{
    struct free_number f = {JOB_FIRST - 1, JOB_FIRST};
    int rc = s->ops->job_list(s, note_number, &f, err);
    *id = f.last < JOB_LAST ? f.last + 1 : f.gap;
    if (!rc && *id > JOB_LAST)
        rc = error_set(err, FAULT_LIMIT, "all numbers from 2001 to 9999 are taken");
    return rc;
}

int store_job_create(struct store *s, struct job *job, struct error *err)
{
    if (job->id && (job->id < JOB_FIRST || job->id > JOB_LAST))
        return error_set(err, FAULT_USAGE, "a job's number is from %u to %u, not %u", JOB_FIRST,
                         JOB_LAST, job->id);
    job->updated = job->created;
    job->batches = 0;
    return s->ops->job_create(s, job, err);
}

/* A batch's own part of the curves: what came of each event, in this minute. */
static void make_points(struct batch *b)
{
    uint64_t minute = b->time / 1000000000;
    minute -= minute % STORE_MINUTE;
    b->points.len = 0;
    for (size_t i = 0; i < b->counts.len; i++) {
        const struct batch_count *c = &b->counts.data[i];
        size_t k = 0;
        if (c->kind != COUNT_NODE)
            continue;
        while (k < b->points.len && strcmp(b->points.data[k].event, c->event) != 0)
            k++;
        if (k == b->points.len)
            *vector_push(&b->points) = (struct batch_point){c->event, minute, 0};
        b->points.data[k].value += c->value;
    }
}

int store_add(struct store *s, struct batch *const *batches, size_t count,
              struct store_outcome *outcomes, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!batches[i]->host)
            batches[i]->host = "";
        if (!batches[i]->moved)
            make_points(batches[i]);
    }
    return count ? s->ops->add(s, batches, count, outcomes, err) : 0;
}

int store_go_on(const struct store *s, struct error *err)
{
    const struct store_patience *p = &s->patience;
    if (p->gone && p->gone(p->context))
        return error_set(err, FAULT_USAGE, "nobody waits for the answer any more");
    if (p->until && clock_now() > p->until)
        return error_set(err, FAULT_USAGE,
                         "this takes longer than a question may (--query-time): ask for one event, "
                         "its largest, or some days with 'event', 'top', 'from' and 'to'");
    return 0;
}

/* Between an engine and who asked: looks now and then whether it is still wanted. */
struct watched {
    const struct store *store;
    store_count_fn *fn;
    void *context;
    unsigned rows;
};

static int pass_on(void *context, const struct store_count *count, struct error *err)
{
    struct watched *w = context;
    int rc = ++w->rows % ROWS_BETWEEN_LOOKS ? 0 : store_go_on(w->store, err);
    return rc ? rc : w->fn(w->context, count, err);
}

int store_counts(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                 struct error *err)
{
    struct watched w = {.store = s, .fn = fn, .context = context};
    if (q->top && !q->event)
        return error_set(err, FAULT_USAGE, "the largest of what? Name an event");
    return s->ops->counts(s, q, pass_on, &w, err);
}

bool store_job_idle(struct store *s, uint32_t id, uint64_t cut)
{
    struct job job;
    return s->ops->job_get(s, id, &job, &(struct error){0}) == 0 && job.updated < cut;
}
