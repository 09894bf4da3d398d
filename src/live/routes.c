/* The routes of a live session; see routes.h. Whatever takes long is threaded. */
#include "live/routes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "capture/control.h"
#include "live/download.h"
#include "live/order.h"
#include "live/top.h"
#include "render/page.h"
#include "render/view_json.h"

#define ORDER_SECONDS 10
#define ORDER_MAX 16384
#define TOP_ROWS_MAX 1000
#define SPAN_THREADS_MAX 256
#define SPAN_PIXELS_MAX 10000

static bool is_ready(const struct live *l, struct http_request *q)
{
    if (l->state)
        return true;
    http_reply_header(q, "Retry-After", "1");
    http_reply_error(q, 503, "the recording has not begun yet: try again in a second");
    return false;
}

static void send_page(struct http_request *q, void *context)
{
    const struct page_asset *a = page_asset(http_path(q));
    (void)context;
    if (!a) {
        http_reply_error(q, 404, "there is nothing at %s", http_path(q));
        return;
    }
    http_reply_header(q, "Cache-Control", "no-cache");
    http_reply_static(q, 200, a->type, a->data, a->len);
}

static void send_snapshot(struct http_request *q, void *context)
{
    struct live *l = context;
    if (!is_ready(l, q))
        return;
    struct state_document *d = state_document(l->state);
    if (d)
        http_reply_shared(q, 200, "application/octet-stream", d->data, d->len,
                          state_release_document, d);
    else
        http_reply_error(q, 503, "the recording has not begun yet: try again in a second");
}

static void join_events(struct http_request *q, void *context)
{
    struct live *l = context;
    stream_join(l->stream, q);
}

/* A number of the query, or `usual`; false if it is none. */
static bool number_of(struct http_request *q, const char *key, uint64_t usual, uint64_t *out)
{
    const char *text = http_query(q, key);
    char *end = NULL;
    *out = text ? strtoull(text, &end, 10) : usual;
    if (!text || (*text >= '0' && *text <= '9' && !*end))
        return true;
    http_reply_error(q, 400, "'%s' is not a number: %s", text, key);
    return false;
}

static bool sort_of(struct http_request *q, enum report_sort *out)
{
    static const char *const names[] = {"self", "total", "name", "samples"};
    const char *text = http_query(q, "sort");
    *out = REPORT_BY_SELF;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!text || strcmp(text, names[i]) == 0) {
            *out = (enum report_sort)i;
            return true;
        }
    }
    http_reply_error(q, 400, "sort is self, total, name or samples, not '%s'", text);
    return false;
}

static void put_view(void *context, const struct view *v)
{
    view_json(v, context);
}

static void send_view(struct http_request *q, void *context)
{
    struct live *l = context;
    struct error err = {0};
    uint64_t pid, top, depth, peak;
    struct views_options o = {.event = http_query(q, "event"),
                              .function = http_query(q, "function"),
                              .thread = http_query(q, "thread"),
                              .module = http_query(q, "module"),
                              .min = 1};
    if (!is_ready(l, q) || !number_of(q, "pid", 0, &pid) || !number_of(q, "top", 0, &top) ||
        !number_of(q, "depth", 0, &depth) || !number_of(q, "peak", 1, &peak) ||
        !sort_of(q, &o.sort))
        return;
    o.pid = (int32_t)pid;
    o.top = top;
    o.depth = (uint32_t)depth;
    o.peak = peak;
    struct json j;
    json_init(&j, NULL, NULL);
    if (state_view(l->state, http_param(q, "name"), &o, put_view, &j, &err)) {
        http_reply_fault(q, &err);
    } else {
        json_finish(&j);
        text_add_char(&j.out, '\n');
        http_reply_text(q, 200, "application/json", &j.out);
    }
    json_release(&j);
}

static void send_status(struct http_request *q, void *context)
{
    struct live *l = context;
    struct state_facts f = {0};
    struct text session = TEXT_INIT, formats = TEXT_INIT;
    struct json j;
    if (l->state)
        state_facts(l->state, &f);
    bool answers =
        l->control && control_ask(l->control, "status", ORDER_SECONDS, &session, NULL) == 0;
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_string(&j, "recording", l->recording);
    json_put_uint(&j, "sequence", f.sequence);
    json_put_double(&j, "seconds", (double)f.duration / 1e9);
    json_put_uint(&j, "samples", f.samples);
    json_put_uint(&j, "lost", f.lost);
    json_put_uint(&j, "processes", f.processes);
    json_put_uint(&j, "running", f.running);
    json_put_bool(&j, "complete", f.complete);
    json_put_uint(&j, "viewers", http_server_counts(l->server)->viewers);
    json_put_uint(&j, "viewers_dropped", http_server_counts(l->server)->viewers_dropped);
    download_names(&formats);
    json_put_string(&j, "formats", formats.data);
    text_release(&formats);
    json_key(&j, "session");
    if (answers)
        json_raw(&j, session.data, session.len);
    else
        json_nothing(&j);
    json_end(&j);
    json_finish(&j);
    text_add_char(&j.out, '\n');
    http_reply_text(q, 200, "application/json", &j.out);
    json_release(&j);
    text_release(&session);
}

static void take_order(struct http_request *q, void *context)
{
    struct live *l = context;
    struct error err = {0};
    struct text line = TEXT_INIT, answer = TEXT_INIT;
    size_t len;
    const char *body = http_body(q, &len);
    int rc = order_parse(body, len, &line, &err);
    bool understood = rc == 0;
    if (!rc && !l->control)
        rc = error_set(&err, FAULT_MISSING, "this session takes no commands");
    if (!rc)
        rc = control_ask(l->control, line.data, ORDER_SECONDS, &answer, &err);
    struct json j;
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_bool(&j, "ok", rc == 0);
    json_put_string(&j, rc ? "error" : "text", rc ? err.text : answer.data);
    json_end(&j);
    json_finish(&j);
    text_add_char(&j.out, '\n');
    http_reply_text(q, rc == 0 ? 200 : understood ? 409 : 400, "application/json", &j.out);
    json_release(&j);
    text_release(&line);
    text_release(&answer);
}

static void send_top(struct http_request *q, void *context)
{
    struct live *l = context;
    struct error err = {0};
    struct text out = TEXT_INIT;
    uint64_t pid, rows;
    if (!is_ready(l, q) || !number_of(q, "pid", 0, &pid) || !number_of(q, "rows", 100, &rows))
        return;
    if (top_write(l->state, (int32_t)pid, rows < TOP_ROWS_MAX ? (unsigned)rows : TOP_ROWS_MAX, &out,
                  &err))
        http_reply_fault(q, &err);
    else
        http_reply_text(q, 200, "application/json", &out);
    text_release(&out);
}

static void send_spans(struct http_request *q, void *context)
{
    struct live *l = context;
    uint32_t threads[SPAN_THREADS_MAX];
    uint64_t from, to, pixels;
    struct text out = TEXT_INIT;
    if (!is_ready(l, q) || !number_of(q, "from", 0, &from) ||
        !number_of(q, "to", UINT64_MAX / 4, &to) || !number_of(q, "pixels", 1000, &pixels))
        return;
    size_t count = page_threads(http_query(q, "threads"), threads, SPAN_THREADS_MAX);
    if (from >= to || !pixels || pixels > SPAN_PIXELS_MAX || count > SPAN_THREADS_MAX) {
        http_reply_error(q, 400,
                         "spans are asked for with from < to (ns), pixels from 1 to %d and at most "
                         "%d threads",
                         SPAN_PIXELS_MAX, SPAN_THREADS_MAX);
        return;
    }
    struct page_window w = {from, to, (uint32_t)pixels, threads, count};
    state_spans(l->state, &w, &out);
    http_reply_text(q, 200, "application/octet-stream", &out);
    text_release(&out);
}

static void send_recording(struct http_request *q, void *context)
{
    struct live *l = context;
    if (is_ready(l, q))
        download_answer(q, l->recording);
}

static const struct http_route routes[] = {
    {HTTP_GET, "/api/snapshot", HTTP_ROLE_READ, send_snapshot, true, 0},
    {HTTP_GET, "/api/events", HTTP_ROLE_READ, join_events, false, 0},
    {HTTP_GET, "/api/spans", HTTP_ROLE_READ, send_spans, true, 0},
    {HTTP_GET, "/api/views/{name}", HTTP_ROLE_READ, send_view, true, 0},
    {HTTP_GET, "/api/top", HTTP_ROLE_READ, send_top, true, 0},
    {HTTP_GET, "/api/status", HTTP_ROLE_READ, send_status, true, 0},
    {HTTP_GET, "/api/recording", HTTP_ROLE_READ, send_recording, true, 0},
    {HTTP_POST, "/api/control", HTTP_ROLE_WRITE, take_order, true, ORDER_MAX},
    {HTTP_GET, "/*", HTTP_ROLE_READ, send_page, false, 0},
};

void routes_add(struct live *l)
{
    http_server_routes(l->server, routes, sizeof routes / sizeof *routes, l);
}
