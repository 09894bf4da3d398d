/* See shelf.h. */
#include "serve/shelf.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "render/page.h"
#include "serve/jobs_internal.h"
#include "serve/reading.h"

#define PIXELS_MAX 10000
#define THREADS_MAX 256

struct shelf {
    struct jobs *jobs;
    pthread_mutex_t lock; /* over all that follows */
    uint32_t job;
    char key[BATCH_KEY_MAX + 1];
    struct profile profile;
    struct page *page; /* NULL: nothing is open */
};

struct shelf *shelf_new(struct jobs *jobs)
{
    struct shelf *s = memory_alloc(sizeof *s);
    s->jobs = jobs;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void put_away(struct shelf *s)
{
    if (!s->page)
        return;
    page_free(s->page);
    profile_release(&s->profile);
    s->page = NULL;
}

void shelf_free(struct shelf *s)
{
    if (!s)
        return;
    put_away(s);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int open_bytes(struct shelf *s, const char *data, size_t len, struct error *err)
{
    struct load_options how = {.hide_interpreter = true, .keep_samples = true, .keep_spans = true};
    put_away(s);
    profile_init(&s->profile);
    int rc = reading_profile(data, len, NULL, &how, &s->profile, err);
    if (rc) {
        profile_release(&s->profile);
        return rc;
    }
    page_prepare(&s->profile);
    s->page = page_new(&s->profile, NULL);
    return 0;
}

/* Opens what the path names, with the lock held; false has been answered. */
static bool take_down(struct shelf *s, struct http_request *q, uint32_t job, const char *key)
{
    struct error err = {0};
    void *data = NULL;
    size_t len = 0;
    if (s->page && s->job == job && !strcmp(s->key, key))
        return true;
    struct store *store = jobs_store(q, s->jobs);
    if (!store)
        return false;
    int rc = store->ops->recording(store, job, key, &data, &len, &err);
    jobs_close(q, s->jobs, store, rc, &err);
    if (!rc) {
        rc = open_bytes(s, data, len, &err);
        if (rc)
            http_reply_error(q, 422, "this recording cannot be shown: %s", err.text);
        s->job = job;
        snprintf(s->key, sizeof s->key, "%s", key);
    }
    free(data);
    return rc == 0;
}

static int add(void *context, const char *data, size_t len)
{
    text_add_len(context, data, len);
    return 0;
}

/* `w` NULL: the whole document. */
static void answer(struct http_request *q, struct shelf *s, const struct page_window *w)
{
    uint32_t job;
    const char *key = http_param(q, "key");
    struct text out = TEXT_INIT;
    if (!jobs_id(q, &job))
        return;
    if (!key || !batch_key_valid(key)) {
        http_reply_error(q, 404, "that is no recording's key");
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (take_down(s, q, job, key)) {
        if (w)
            page_spans(s->page, w, add, &out);
        else
            page_write(s->page, add, &out);
        http_reply_text(q, 200, "application/octet-stream", &out);
    }
    pthread_mutex_unlock(&s->lock);
    text_release(&out);
}

static void send_document(struct http_request *q, void *context)
{
    answer(q, context, NULL);
}

static void send_spans(struct http_request *q, void *context)
{
    uint32_t threads[THREADS_MAX];
    uint64_t from, to, pixels;
    if (!jobs_number(q, "from", UINT64_MAX, 0, &from) ||
        !jobs_number(q, "to", UINT64_MAX, UINT64_MAX / 4, &to) ||
        !jobs_number(q, "pixels", PIXELS_MAX, 1000, &pixels))
        return;
    size_t count = page_threads(http_query(q, "threads"), threads, THREADS_MAX);
    if (from >= to || count > THREADS_MAX) {
        http_reply_error(q, 400, "spans are asked for with from < to (ns) and at most %d threads",
                         THREADS_MAX);
        return;
    }
    struct page_window w = {from, to, (uint32_t)pixels, threads, count};
    answer(q, context, &w);
}

static void send_page(struct http_request *q, void *context)
{
    const char *path = http_path(q);
    const struct page_asset *a = page_asset(strcmp(path, "/") ? path : "/jobs");
    (void)context;
    if (!a) {
        http_reply_error(q, 404, "there is nothing at %s", path);
        return;
    }
    http_reply_header(q, "Cache-Control", "no-cache");
    http_reply_static(q, 200, a->type, a->data, a->len);
}

const struct http_route shelf_routes[] = {
    {HTTP_GET, "/api/jobs/{id}/recordings/{key}/document", HTTP_ROLE_READ, send_document,
     .threaded = true},
    {HTTP_GET, "/api/jobs/{id}/recordings/{key}/spans", HTTP_ROLE_READ, send_spans,
     .threaded = true},
    {HTTP_GET, "/*", HTTP_ROLE_READ, send_page},
};

size_t shelf_route_count(void)
{
    return sizeof shelf_routes / sizeof *shelf_routes;
}
