/* Streams of events; see stream.h. */
#include "serve/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve/http_internal.h"

#define HISTORY_USUAL ((size_t)8 << 20)
#define HEARTBEAT_SECONDS 15
#define STALL_SECONDS 60

/* An event as it goes out, shared by the history and every output that it waits in. */
struct piece {
    unsigned owners;
    uint64_t id;
    size_t len;
    struct piece *next;
    char bytes[];
};

struct viewer {
    struct stream *stream;
    struct connection *connection;
    struct viewer *before, *after;
};

struct stream {
    struct http_server *server;
    struct stream_options options;
    uint64_t epoch; /* differs from server to server, so that none goes on from another's */
    uint64_t last_id;
    struct piece *oldest, *newest;
    size_t kept;
    struct piece *present;  /* the state after last_id, if anyone has asked */
    struct piece *farewell; /* there will be no more */
    struct viewer *first;
    size_t viewers;
    struct event *heartbeat;
};

static void piece_drop(struct piece *p)
{
    if (p && --p->owners == 0)
        free(p);
}

static void on_sent(const void *data, size_t len, void *context)
{
    (void)data;
    (void)len;
    piece_drop(context);
}

/* A line feed would end the field: a document may have some between its values. */
static struct piece *piece_new(const struct stream *t, uint64_t id, const char *event,
                               const char *data, size_t len)
{
    struct text out = TEXT_INIT;
    text_add(&out, "id: ");
    if (!t->options.plain)
        text_format(&out, "%llx-", (unsigned long long)t->epoch);
    text_format(&out, "%llu\nevent: %s\ndata: ", (unsigned long long)id, event);
    for (size_t at = 0; at < len;) {
        const char *feed = memchr(data + at, '\n', len - at);
        size_t n = feed ? (size_t)(feed - data) - at : len - at;
        text_add_len(&out, data + at, n);
        at += n + (feed != NULL);
        if (feed && at < len)
            text_add(&out, "\ndata: ");
    }
    text_add(&out, "\n\n");
    struct piece *p = memory_alloc(sizeof *p + out.len);
    *p = (struct piece){.owners = 1, .id = id, .len = out.len};
    memcpy(p->bytes, out.data, out.len);
    text_release(&out);
    return p;
}

static void beat(evutil_socket_t fd, short what, void *context)
{
    struct stream *t = context;
    (void)fd;
    (void)what;
    for (struct viewer *v = t->first; v; v = v->after)
        bufferevent_write(v->connection->bev, ":\n\n", 3);
}

struct stream *stream_new(struct http_server *s, const struct stream_options *o)
{
    struct stream *t = memory_alloc(sizeof *t);
    struct timeval often = {.tv_sec = HEARTBEAT_SECONDS};
    t->server = s;
    t->options = *o;
    t->options.history = o->history ? o->history : HISTORY_USUAL;
    t->epoch = clock_wall();
    t->heartbeat = event_new(s->base, -1, EV_PERSIST, beat, t);
    event_add(t->heartbeat, &often);
    return t;
}

static void forget_oldest(struct stream *t)
{
    struct piece *p = t->oldest;
    t->oldest = p->next;
    if (!t->oldest)
        t->newest = NULL;
    t->kept -= p->len;
    piece_drop(p);
}

void stream_free(struct stream *t)
{
    if (!t)
        return;
    while (t->first)
        connection_free(t->first->connection);
    while (t->oldest)
        forget_oldest(t);
    piece_drop(t->present);
    piece_drop(t->farewell);
    event_free(t->heartbeat);
    free(t);
}

static bool give(struct viewer *v, struct piece *p)
{
    struct connection *c = v->connection;
    struct evbuffer *out = bufferevent_get_output(c->bev);
    if (evbuffer_get_length(out) > c->server->options.viewer_lag)
        return false;
    p->owners++;
    if (evbuffer_add_reference(out, p->bytes, p->len, on_sent, p) == 0)
        return true;
    piece_drop(p);
    return false;
}

#define UNSEEN UINT64_MAX

/* The event a viewer saw last, if it was one of ours; or UNSEEN. */
static uint64_t last_seen(const struct stream *t, const struct http_request *q)
{
    const char *said = http_header(q, "last-event-id");
    char *end;
    said = said ? said : http_query(q, "last-event-id");
    said = said ? said : http_query(q, "from");
    if (!said)
        return UNSEEN;
    if (!t->options.plain) {
        unsigned long long epoch = strtoull(said, &end, 16);
        if (*end != '-' || epoch != t->epoch)
            return UNSEEN;
        said = end + 1;
    }
    uint64_t id = strtoull(said, &end, 10);
    return end == said || *end || id > t->last_id ? UNSEEN : id;
}

static void give_present(struct stream *t, struct viewer *v)
{
    if (!t->present) {
        struct text state = TEXT_INIT;
        if (t->options.present)
            t->options.present(t->options.context, &state);
        t->present = piece_new(t, t->last_id, t->options.present ? "present" : "reset", state.data,
                               state.len);
        text_release(&state);
    }
    give(v, t->present);
}

static void begin_stream(struct http_request *q)
{
    struct connection *c = q->connection;
    struct text head = TEXT_INIT;
    q->status = 200;
    q->type = "text/event-stream";
    q->streaming = true;
    q->close = true;
    request_write_head(q, &head);
    bufferevent_write(c->bev, head.data, head.len);
    text_release(&head);
    request_log(q);
    c->state = CONNECTION_VIEWER;
    evtimer_del(c->deadline);
    struct timeval stall = {.tv_sec = STALL_SECONDS};
    bufferevent_set_timeouts(c->bev, NULL, &stall);
}

void stream_join(struct stream *t, struct http_request *q)
{
    uint64_t seen = last_seen(t, q);
    if (q->head.method == HTTP_HEAD) {
        http_reply(q, 200, "text/event-stream", "", 0);
        return;
    }
    begin_stream(q);
    struct viewer *v = memory_alloc(sizeof *v);
    v->stream = t;
    v->connection = q->connection;
    v->after = t->first;
    if (t->first)
        t->first->before = v;
    t->first = v;
    t->viewers++;
    t->server->counts.viewers++;
    q->connection->viewer = v;
    if (seen == UNSEEN || (seen < t->last_id && (!t->oldest || t->oldest->id > seen + 1)))
        give_present(t, v);
    else
        for (struct piece *p = t->oldest; p; p = p->next)
            if (p->id > seen)
                give(v, p);
    if (t->farewell)
        give(v, t->farewell);
}

void viewer_gone(struct viewer *v)
{
    struct stream *t = v->stream;
    *(v->before ? &v->before->after : &t->first) = v->after;
    if (v->after)
        v->after->before = v->before;
    t->viewers--;
    t->server->counts.viewers--;
    v->connection->viewer = NULL;
    free(v);
}

void stream_send(struct stream *t, const char *event, const char *data, size_t len)
{
    struct piece *p = piece_new(t, ++t->last_id, event, data, len);
    piece_drop(t->present);
    t->present = NULL;
    for (struct viewer *v = t->first, *after; v; v = after) {
        after = v->after;
        if (!give(v, p)) {
            t->server->counts.viewers_dropped++;
            connection_free(v->connection);
        }
    }
    *(t->newest ? &t->newest->next : &t->oldest) = p;
    t->newest = p;
    t->kept += p->len;
    while (t->kept > t->options.history && t->oldest != t->newest)
        forget_oldest(t);
}

void stream_finish(struct stream *t, const char *event)
{
    piece_drop(t->farewell);
    t->farewell = piece_new(t, t->last_id, event, "{}", 2);
    for (struct viewer *v = t->first; v; v = v->after)
        give(v, t->farewell);
}

size_t stream_viewers(const struct stream *t)
{
    return t->viewers;
}
