/*
 * One client: bytes in, requests out; answers in, bytes out. One request at a time: what a client
 * sends ahead waits in the buffer, which is bounded. Every state but a viewer's has a deadline that
 * bytes trickling in do not move.
 */
#include <arpa/inet.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve/http_internal.h"

#define SEND_SECONDS 60    /* without a byte going out */
#define HANDLE_SECONDS 300 /* until whoever makes the answer has done so */
#define LINGER_SECONDS 2

static void next_request(struct connection *c);
static void read_more(struct connection *c);

void connection_deadline(struct connection *c, unsigned seconds)
{
    struct timeval t = {.tv_sec = seconds};
    evtimer_add(c->deadline, &t);
}

static void unlink_connection(struct connection *c)
{
    struct http_server *s = c->server;
    *(c->before ? &c->before->after : &s->first) = c->after;
    *(c->after ? &c->after->before : &s->last) = c->before;
    s->counts.connections--;
}

void connection_free(struct connection *c)
{
    if (c->viewer)
        viewer_gone(c->viewer);
    if (c->request) {
        c->request->connection = NULL;
        __atomic_store_n(&c->request->gone, true, __ATOMIC_RELAXED);
        /* Whoever makes the answer still looks at it, and frees it through http_done. */
        if (c->state != CONNECTION_HANDLED)
            request_free(c->request);
    }
    unlink_connection(c);
    event_free(c->deadline);
    bufferevent_free(c->bev);
    free(c);
}

struct shared {
    void (*release)(void *context);
    void *context;
};

static void on_sent(const void *data, size_t len, void *context)
{
    struct shared *s = context;
    (void)data;
    (void)len;
    if (s)
        s->release(s->context);
    free(s);
}

/* Output: the head, then the body by reference or from its file. */
static void send_body(struct connection *c, struct http_request *q)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (q->fixed) {
        struct shared *shared = NULL;
        if (q->release) {
            shared = memory_alloc(sizeof *shared);
            *shared = (struct shared){q->release, q->release_context};
            q->release = NULL;
        }
        evbuffer_add_reference(out, q->fixed, q->fixed_len, on_sent, shared);
    } else if (q->fd >= 0) {
        off_t at = lseek(q->fd, 0, SEEK_CUR);
        if (q->fd_len && evbuffer_add_file(out, q->fd, at, (ev_off_t)q->fd_len) == 0)
            q->fd = -1;
    } else {
        evbuffer_add(out, q->reply.data, q->reply.len);
    }
}

void connection_answer(struct http_request *q)
{
    struct connection *c = q->connection;
    struct text head = TEXT_INIT;
    c->state = CONNECTION_SENDING;
    q->close |= !q->head.keep_alive || c->server->stopped || c->ended;
    request_write_head(q, &head);
    bufferevent_write(c->bev, head.data, head.len);
    text_release(&head);
    if (q->head.method != HTTP_HEAD && q->status != 304 && q->status != 204)
        send_body(c, q);
    evtimer_del(c->deadline);
    struct timeval t = {.tv_sec = SEND_SECONDS};
    bufferevent_set_timeouts(c->bev, NULL, &t);
    bufferevent_enable(c->bev, EV_WRITE);
}

/* Refused before it was read to its end: the connection cannot be used any further. */
static void refuse(struct connection *c)
{
    c->request->close = true;
    http_done(c->request);
}

static void begin_handling(struct connection *c)
{
    c->state = CONNECTION_HANDLED;
    connection_deadline(c, HANDLE_SECONDS);
    request_dispatch(c->request);
}

/* Everything after an answer that closes is thrown away, so that the client can read the answer
 * before it learns that we do not listen any more. */
static void begin_linger(struct connection *c)
{
    c->state = CONNECTION_LINGER;
    evbuffer_drain(bufferevent_get_input(c->bev), SIZE_MAX);
    if (c->ended || c->server->tls) {
        connection_free(c);
        return;
    }
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    connection_deadline(c, LINGER_SECONDS);
}

static void read_head(struct connection *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    size_t have = evbuffer_get_length(in);
    size_t len = end.pos < 0 ? 0 : (size_t)end.pos + 4;
    if (!len && have && !c->request) /* it has begun: now it must come to an end */
        c->request = request_new(c), connection_deadline(c, c->server->options.head_seconds);
    if (!len && have < c->server->options.head_max)
        return;
    if (!c->request)
        c->request = request_new(c);
    struct http_request *q = c->request;
    if (!len || len > c->server->options.head_max) {
        http_reply_error(q, 431, "the request's head is longer than %zu bytes",
                         c->server->options.head_max);
        refuse(c);
        return;
    }
    const char *why = "";
    q->head_bytes = memory_alloc(len + 1);
    evbuffer_remove(in, q->head_bytes, len);
    int status = head_parse(q->head_bytes, len, &q->head, &why);
    if (status)
        http_reply_error(q, status, "%s", why);
    if (status || request_admit(q)) {
        q->close |= status || q->head.length || q->head.chunked;
        http_done(q);
        return;
    }
    if (q->head.expects_continue && (q->head.length || q->head.chunked))
        bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    q->body_left = q->head.length;
    c->state = CONNECTION_BODY;
    connection_deadline(c, c->server->options.body_seconds);
    read_more(c);
}

static void read_chunks(struct connection *c, struct evbuffer *in)
{
    struct http_request *q = c->request;
    size_t max = q->route->body_max ? q->route->body_max : c->server->options.body_max;
    for (size_t n; (n = evbuffer_get_contiguous_space(in)) > 0;) {
        size_t taken = chunks_feed(&q->chunks, (const char *)evbuffer_pullup(in, (ev_ssize_t)n), n,
                                   max, &q->body);
        evbuffer_drain(in, taken);
        if (q->body.len > max) {
            http_reply_error(q, 413, "the body has more than the %zu bytes that are taken here",
                             max);
            refuse(c);
            return;
        }
        if (q->chunks.state == CHUNK_BAD) {
            http_reply_error(q, 400, "the body's chunks are malformed");
            refuse(c);
            return;
        }
        if (q->chunks.state == CHUNK_DONE) {
            begin_handling(c);
            return;
        }
    }
}

static void read_body(struct connection *c)
{
    struct http_request *q = c->request;
    struct evbuffer *in = bufferevent_get_input(c->bev);
    if (q->head.chunked) {
        read_chunks(c, in);
        return;
    }
    size_t have = evbuffer_get_length(in);
    size_t n = have < q->body_left ? have : (size_t)q->body_left;
    if (n) {
        text_reserve(&q->body, n);
        evbuffer_remove(in, q->body.data + q->body.len, n);
        q->body.len += n;
        q->body.data[q->body.len] = 0;
        q->body_left -= n;
    }
    if (!q->body_left)
        begin_handling(c);
}

/* May free the connection. */
static void read_more(struct connection *c)
{
    switch (c->state) {
    case CONNECTION_HEAD:
        read_head(c);
        break;
    case CONNECTION_BODY:
        read_body(c);
        break;
    case CONNECTION_VIEWER:
    case CONNECTION_LINGER:
        evbuffer_drain(bufferevent_get_input(c->bev), SIZE_MAX);
        break;
    case CONNECTION_HANDLED:
    case CONNECTION_SENDING:
        break; /* waits its turn */
    }
}

static void on_read(struct bufferevent *bev, void *context)
{
    (void)bev;
    read_more(context);
}

static void next_request(struct connection *c)
{
    request_free(c->request);
    c->request = NULL;
    c->state = CONNECTION_HEAD;
    connection_deadline(c, c->server->options.idle_seconds);
    read_more(c);
}

static void on_written(struct bufferevent *bev, void *context)
{
    struct connection *c = context;
    if (evbuffer_get_length(bufferevent_get_output(bev)))
        return;
    if (c->state != CONNECTION_SENDING)
        return;
    bufferevent_set_timeouts(bev, NULL, NULL);
    if (c->request->close)
        begin_linger(c);
    else
        next_request(c);
}

static void on_event(struct bufferevent *bev, short what, void *context)
{
    struct connection *c = context;
    (void)bev;
    if (what & BEV_EVENT_CONNECTED)
        return;
    bool only_end = (what & BEV_EVENT_EOF) && !(what & BEV_EVENT_ERROR);
    c->ended = true;
    if (c->request)
        __atomic_store_n(&c->request->gone, true, __ATOMIC_RELAXED);
    /* A client that has said all it wants to say may still listen. */
    if (only_end && (c->state == CONNECTION_HANDLED || c->state == CONNECTION_SENDING))
        return;
    connection_free(c);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct connection *c = context;
    (void)fd;
    (void)what;
    bool reading = c->state == CONNECTION_BODY || (c->state == CONNECTION_HEAD && c->request);
    if (!reading) {
        connection_free(c);
        return;
    }
    http_reply_error(c->request, 408, "the request did not come to an end in time");
    refuse(c);
}

static struct bufferevent *make_bufferevent(struct http_server *s, evutil_socket_t fd)
{
    if (!s->tls)
        return bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE);
    SSL *ssl = SSL_new(s->tls);
    return ssl ? bufferevent_openssl_socket_new(s->base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                BEV_OPT_CLOSE_ON_FREE)
               : NULL;
}

static void name_peer(struct connection *c, const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        memcpy(c->address, &in->sin_addr, 4);
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)address;
        memcpy(c->address, &in->sin6_addr, 8); /* who has one has the whole /64 */
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    }
    snprintf(c->peer, sizeof c->peer, "%s", text);
}

void connection_new(struct http_server *s, evutil_socket_t fd, const struct sockaddr *address)
{
    int on = 1;
    struct bufferevent *bev = make_bufferevent(s, fd);
    if (!bev) {
        evutil_closesocket(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *c = memory_alloc(sizeof *c);
    c->server = s;
    c->bev = bev;
    c->deadline = evtimer_new(s->base, on_deadline, c);
    c->before = s->last;
    *(s->last ? &s->last->after : &s->first) = c;
    s->last = c;
    s->counts.connections++;
    name_peer(c, address);
    bufferevent_setcb(bev, on_read, on_written, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, s->options.head_max + 4);
    connection_deadline(c, s->options.head_seconds);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}
