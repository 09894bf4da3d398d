/* A request from its head to its answer, and what handlers see of it; see http.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "serve/http_internal.h"

#define LOOP_INFLATED_MAX ((size_t)1 << 20) /* more takes too long for the loop */

struct http_request *request_new(struct connection *c)
{
    struct http_request *q = memory_alloc(sizeof *q);
    q->connection = c;
    q->server = c->server;
    q->fd = -1;
    q->start = clock_now();
    q->wall = clock_wall();
    text_init(&q->body);
    text_init(&q->reply);
    text_init(&q->headers);
    memcpy(q->peer, c->peer, sizeof q->peer);
    return q;
}

void request_free(struct http_request *q)
{
    if (!q)
        return;
    request_release(q);
    text_release(&q->body);
    text_release(&q->reply);
    text_release(&q->headers);
    if (q->fd >= 0)
        close(q->fd);
    free(q->head_bytes);
    free(q->param_bytes);
    free(q);
}

int request_admit(struct http_request *q)
{
    unsigned allowed = 0;
    if (guard_check_origin(q))
        return -1;
    q->route = route_find(q->server, q, &allowed, &q->context);
    if (guard_check_token(q))
        return -1;
    if (!q->route && allowed) {
        struct text names = TEXT_INIT;
        for (unsigned bit = HTTP_GET; bit <= HTTP_DELETE; bit <<= 1)
            if (allowed & bit)
                text_format(&names, "%s%s", names.len ? ", " : "", http_method_name(bit));
        http_reply_header(q, "Allow", names.data);
        http_reply_error(q, 405, "%s takes %s, not %s", q->head.path, names.data,
                         http_method_name(q->head.method));
        text_release(&names);
        return -1;
    }
    if (!q->route) {
        http_reply_error(q, 404, "there is nothing at %s", q->head.path);
        return -1;
    }
    size_t max = q->route->body_max ? q->route->body_max : q->server->options.body_max;
    if (q->head.length > max) {
        http_reply_error(q, 413, "the body has %llu bytes, more than the %zu that are taken here",
                         (unsigned long long)q->head.length, max);
        return -1;
    }
    return 0;
}

/* 0, or the answer is a refusal already. */
static int inflate_request(struct http_request *q, size_t max)
{
    const char *encoding = head_header(&q->head, "content-encoding"), *why;
    struct text plain = TEXT_INIT;
    if (!encoding || !*encoding || strcmp(encoding, "identity") == 0)
        return 0;
    int status = inflate_body(encoding, &q->body, max, &plain, &why);
    text_release(&q->body);
    q->body = plain;
    if (status)
        http_reply_error(q, status, "%s", why);
    return status;
}

static void handle(struct http_request *q)
{
    size_t max = q->server->options.inflated_max;
    if (!q->route->threaded && max > LOOP_INFLATED_MAX)
        max = LOOP_INFLATED_MAX;
    if (inflate_request(q, max) == 0)
        q->route->handle(q, q->context);
}

static void handle_threaded(void *context)
{
    handle(context);
}

static void threaded_done(void *context)
{
    struct http_request *q = context;
    if (!q->held)
        http_done(q);
}

void request_dispatch(struct http_request *q)
{
    if (q->route->threaded) {
        if (pool_add(q->server->pool, handle_threaded, threaded_done, q))
            return;
        http_reply_header(q, "Retry-After", "1");
        http_reply_error(q, 503, "too many requests wait already: try again in a second");
    } else {
        handle(q);
    }
    if (!q->held && !q->streaming)
        http_done(q);
}

void http_hold(struct http_request *q)
{
    q->held = true;
}

void http_done(struct http_request *q)
{
    if (!q->status)
        http_reply_error(q, 500, "no answer was made to this request");
    request_log(q);
    if (q->connection)
        connection_answer(q);
    else
        request_free(q);
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {201, "Created"},
                   {202, "Accepted"},
                   {204, "No Content"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {413, "Content Too Large"},
                   {414, "URI Too Long"},
                   {421, "Misdirected Request"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {500, "Internal Server Error"},
                   {503, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return status < 400 ? "OK" : "Error";
}

/* Nothing of a page runs but its own files, and nobody may frame it or guess its types. */
static const char safety[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; worker-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

void request_write_head(const struct http_request *q, struct text *out)
{
    text_format(out, "HTTP/1.1 %d %s\r\n", q->status, reason_of(q->status));
    if (q->type)
        text_format(out, "Content-Type: %s\r\n", q->type);
    if (!q->streaming && q->status != 304 && q->status != 204)
        text_format(out, "Content-Length: %llu\r\n",
                    (unsigned long long)(q->fd >= 0 ? q->fd_len
                                         : q->fixed ? q->fixed_len
                                                    : q->reply.len));
    text_add(out, safety);
    if (!strstr(q->headers.data, "Cache-Control:"))
        text_add(out, "Cache-Control: no-store\r\n");
    if (q->set_cookie)
        text_format(out, "Set-Cookie: sonde-%u=%s; Path=/; HttpOnly; SameSite=Strict%s\r\n",
                    q->server->port, head_query(&q->head, "token"),
                    q->server->tls ? "; Secure" : "");
    text_add(out, q->headers.data);
    text_format(out, "Connection: %s\r\n\r\n", q->close ? "close" : "keep-alive");
}

void request_log(const struct http_request *q)
{
    struct http_server *s = q->server;
    uint64_t bytes = q->fd >= 0 ? q->fd_len : q->fixed ? q->fixed_len : q->reply.len;
    s->counts.requests++;
    s->counts.answered[q->status / 100 < 6 ? q->status / 100 : 5]++;
    s->counts.bytes_in += q->body.len;
    s->counts.bytes_out += bytes;
    if (!s->options.log)
        return;
    struct http_entry e = {.time = q->wall,
                           .duration = clock_now() - q->start,
                           .peer = q->peer,
                           .method = http_method_name(q->head.method),
                           .path = q->head.path ? q->head.path : "-",
                           .status = q->status,
                           .bytes = bytes,
                           .role = q->role};
    s->options.log(s->options.context, &e);
}

enum http_method http_method(const struct http_request *q)
{
    return q->head.method;
}

const char *http_path(const struct http_request *q)
{
    return q->head.path;
}

const char *http_query(const struct http_request *q, const char *key)
{
    return head_query(&q->head, key);
}

const char *http_header(const struct http_request *q, const char *name)
{
    return head_header(&q->head, name);
}

const char *http_body(const struct http_request *q, size_t *len)
{
    if (len)
        *len = q->body.len;
    return q->body.data;
}

enum http_role http_role_of(const struct http_request *q)
{
    return q->role;
}

const char *http_peer(const struct http_request *q)
{
    return q->peer;
}

struct http_server *http_server_of(const struct http_request *q)
{
    return q->server;
}

void request_release(struct http_request *q)
{
    if (q->release)
        q->release(q->release_context);
    q->release = NULL;
}

/* Forgets an answer that was said before. */
static void begin_reply(struct http_request *q, int status, const char *type)
{
    text_clear(&q->reply);
    q->fixed = NULL;
    request_release(q);
    if (q->fd >= 0)
        close(q->fd);
    q->fd = -1;
    q->status = status;
    q->type = type;
}

void http_reply(struct http_request *q, int status, const char *type, const void *data, size_t len)
{
    begin_reply(q, status, type);
    text_add_len(&q->reply, data, len);
}

void http_reply_text(struct http_request *q, int status, const char *type, struct text *body)
{
    begin_reply(q, status, type);
    text_release(&q->reply);
    q->reply = *body;
    text_init(body);
}

bool http_gone(const struct http_request *q)
{
    return __atomic_load_n(&q->gone, __ATOMIC_RELAXED);
}

bool http_said(const struct http_request *q, int *status, const char **type, const char **data,
               size_t *len)
{
    *status = q->status;
    *type = q->type;
    *data = q->reply.data;
    *len = q->reply.len;
    return q->status && !q->fixed && q->fd < 0;
}

void http_reply_static(struct http_request *q, int status, const char *type, const void *data,
                       size_t len)
{
    begin_reply(q, status, type);
    q->fixed = data;
    q->fixed_len = len;
}

void http_reply_shared(struct http_request *q, int status, const char *type, const void *data,
                       size_t len, void (*release)(void *context), void *context)
{
    http_reply_static(q, status, type, data, len);
    q->release = release;
    q->release_context = context;
}

void http_reply_error(struct http_request *q, int status, const char *format, ...)
{
    struct text sentence = TEXT_INIT;
    struct json j;
    va_list args;
    va_start(args, format);
    text_vformat(&sentence, format, args);
    va_end(args);
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_string(&j, "error", sentence.data);
    json_put_int(&j, "status", status);
    json_end(&j);
    json_finish(&j);
    text_add_char(&j.out, '\n');
    http_reply_text(q, status, "application/json", &j.out);
    json_release(&j);
    text_release(&sentence);
}

void http_reply_fault(struct http_request *q, const struct error *err)
{
    int status = 500;
    switch (err->fault) {
    case FAULT_USAGE:
    case FAULT_INPUT:
        status = 400;
        break;
    case FAULT_MISSING:
        status = 404;
        break;
    case FAULT_LIMIT:
        status = 413;
        break;
    case FAULT_NONE:
    case FAULT_SYSTEM:
        break;
    }
    http_reply_error(q, status, "%s", err->text);
}

void http_reply_file(struct http_request *q, int fd, const char *type)
{
    struct stat st;
    begin_reply(q, 200, type);
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || fstat(fd, &st) || st.st_size < at) {
        close(fd);
        http_reply_error(q, 500, "a file that was to be sent cannot be read");
        return;
    }
    q->fd = fd;
    q->fd_len = (uint64_t)(st.st_size - at);
}

void http_reply_header(struct http_request *q, const char *name, const char *value)
{
    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return;
    text_format(&q->headers, "%s: %s\r\n", name, value);
}
