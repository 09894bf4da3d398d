/* The server's life: listening, accepting, stopping; see http.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/http_internal.h"

#define BACKLOG 1024

static void fill_in(struct http_options *o)
{
    o->bind = o->bind ? o->bind : "127.0.0.1";
    o->head_max = o->head_max ? o->head_max : 32768;
    o->body_max = o->body_max ? o->body_max : (size_t)64 << 20;
    o->inflated_max = o->inflated_max ? o->inflated_max : (size_t)256 << 20;
    o->connections_max = o->connections_max ? o->connections_max : 4096;
    o->rate = o->rate ? o->rate : 1000;
    o->head_seconds = o->head_seconds ? o->head_seconds : 10;
    o->body_seconds = o->body_seconds ? o->body_seconds : 120;
    o->idle_seconds = o->idle_seconds ? o->idle_seconds : 60;
    o->threads = o->threads ? o->threads : 2;
    o->viewer_lag = o->viewer_lag ? o->viewer_lag : (size_t)16 << 20;
}

/* A connection that only waits gives its place to a new one. */
static bool make_room(struct http_server *s)
{
    if (s->counts.connections < s->options.connections_max)
        return true;
    for (struct connection *c = s->first; c; c = c->after) {
        if (c->state != CONNECTION_HEAD && c->state != CONNECTION_LINGER)
            continue;
        connection_free(c);
        return true;
    }
    return false;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int len, void *context)
{
    struct http_server *s = context;
    (void)listener;
    (void)len;
    if (!make_room(s)) {
        s->counts.refused_connections++;
        evutil_closesocket(fd);
        return;
    }
    s->counts.accepted++;
    connection_new(s, fd, address);
}

/* No descriptors are left, most likely: waiting connections are given up rather than spun on. */
static void on_accept_error(struct evconnlistener *listener, void *context)
{
    struct http_server *s = context;
    (void)listener;
    s->counts.refused_connections++;
    for (struct connection *c = s->first; c; c = c->after) {
        if (c->state != CONNECTION_HEAD)
            continue;
        connection_free(c);
        return;
    }
}

static int open_tls(struct http_server *s, struct error *err)
{
    const struct http_options *o = &s->options;
    if (!o->tls_cert && !o->tls_key)
        return 0;
    if (!o->tls_cert || !o->tls_key)
        return error_set(err, FAULT_USAGE, "TLS needs both a certificate and its key");
    s->tls = SSL_CTX_new(TLS_server_method());
    if (!s->tls)
        return error_set(err, FAULT_SYSTEM, "cannot start TLS");
    SSL_CTX_set_min_proto_version(s->tls, TLS1_2_VERSION);
    SSL_CTX_set_options(s->tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    const char *which = o->tls_cert;
    bool good = SSL_CTX_use_certificate_chain_file(s->tls, o->tls_cert) == 1;
    if (good) {
        which = o->tls_key;
        good = SSL_CTX_use_PrivateKey_file(s->tls, o->tls_key, SSL_FILETYPE_PEM) == 1 &&
               SSL_CTX_check_private_key(s->tls) == 1;
    }
    if (good)
        return 0;
    char why[200];
    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    return error_set(err, FAULT_INPUT, "cannot use %s for TLS: %s", which, why);
}

static int make_address(const struct http_options *o, struct sockaddr_storage *out, int *len,
                        struct error *err)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, o->bind, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(o->port);
        *len = sizeof *four;
    } else if (inet_pton(AF_INET6, o->bind, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(o->port);
        *len = sizeof *six;
    } else {
        return error_set(err, FAULT_USAGE,
                         "cannot listen at '%s': it is not an address such as 127.0.0.1 or ::1",
                         o->bind);
    }
    return 0;
}

static int open_listener(struct http_server *s, struct error *err)
{
    struct sockaddr_storage address;
    int len = 0;
    int rc = make_address(&s->options, &address, &len, err);
    if (rc)
        return rc;
    s->listener = evconnlistener_new_bind(
        s->base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
        BACKLOG, (struct sockaddr *)&address, len);
    if (!s->listener)
        return error_errno(err, FAULT_SYSTEM, "cannot listen at %s port %u%s", s->options.bind,
                           s->options.port, errno == EADDRINUSE ? " (choose another port)" : "");
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    socklen_t size = sizeof address;
    getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&address, &size);
    s->port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                 : ((struct sockaddr_in6 *)&address)->sin6_port);
    snprintf(s->host, sizeof s->host, address.ss_family == AF_INET ? "%s" : "[%s]",
             s->options.bind);
    return 0;
}

static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

int http_server_new(const struct http_options *o, struct event_base *base, struct http_server **out,
                    struct error *err)
{
    struct http_server *s = memory_alloc(sizeof *s);
    s->options = *o;
    s->base = base;
    fill_in(&s->options);
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    int rc = open_tls(s, err);
    if (!rc && !o->no_listen)
        rc = open_listener(s, err);
    if (rc) {
        http_server_free(s);
        return rc;
    }
    s->limiter = limiter_new();
    s->pool = pool_new(base, s->options.threads);
    *out = s;
    return 0;
}

void http_server_routes(struct http_server *s, const struct http_route *routes, size_t count,
                        void *context)
{
    *vector_push(&s->tables) = (struct route_table){routes, count, context};
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_address(const struct http_server *s, struct text *out)
{
    text_format(out, "%s://%s:%u", s->tls ? "https" : "http", s->host, s->port);
}

const struct http_counts *http_server_counts(const struct http_server *s)
{
    return &s->counts;
}

/* Until nothing is under way any more, or the time is up. */
static void look_for_end(evutil_socket_t fd, short what, void *context)
{
    struct http_server *s = context;
    bool busy = false;
    (void)fd;
    (void)what;
    for (struct connection *c = s->first, *after; c; c = after) {
        after = c->after;
        bool sent = !evbuffer_get_length(bufferevent_get_output(c->bev));
        if ((c->state == CONNECTION_HEAD && !c->request) || c->state == CONNECTION_LINGER ||
            (c->state == CONNECTION_VIEWER && sent))
            connection_free(c);
        else
            busy = true;
    }
    if (!busy || clock_now() >= s->stop_at)
        event_base_loopbreak(s->base);
}

void http_server_stop(struct http_server *s, unsigned grace)
{
    if (s->stopped)
        return;
    s->stopped = true;
    if (s->listener)
        evconnlistener_disable(s->listener);
    struct timeval often = {.tv_usec = 20000};
    s->stop_at = clock_now() + grace * 1000000ull;
    s->stopping = event_new(s->base, -1, EV_PERSIST, look_for_end, s);
    event_add(s->stopping, &often);
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    pool_free(s->pool);
    while (s->first)
        connection_free(s->first);
    if (s->stopping)
        event_free(s->stopping);
    if (s->listener)
        evconnlistener_free(s->listener);
    limiter_free(s->limiter);
    SSL_CTX_free(s->tls);
    vector_release(&s->tables);
    free(s);
}

void http_server_post(struct http_server *s, void (*fn)(void *context), void *context)
{
    pool_post(s->pool, fn, context);
}

int http_server_work(struct http_server *s, void (*work)(void *context),
                     void (*done)(void *context), void *context, struct error *err)
{
    if (pool_add(s->pool, work, done, context))
        return 0;
    return error_set(err, FAULT_LIMIT, "too much waits to be worked on already");
}
