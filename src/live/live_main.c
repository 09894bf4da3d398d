/*
 * The live process's loop: every second a step of the state on the pool, then its delta to all
 * viewers; names beside it. The loop itself never waits for either.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "live/live_internal.h"
#include "live/publish.h"
#include "live/routes.h"
#include "serve/token.h"

#define THREADS 3
#define GRACE_MS 1500
#define PUBLISH_WAIT 50000000ull /* ns */
#define PUBLISH_WAITS 40

struct runner {
    struct live live; /* what the routes see */
    const struct live_options *options;
    struct event_base *base;
    struct event *told, *tick, *linger;
    struct publisher *publisher; /* or NULL */
    unsigned waited;             /* times that the end was put off for it */
    char token[TOKEN_TEXT];
    bool advancing, naming, over; /* over: nothing more is written */
    bool last;                    /* the step under way began after that */
    struct text delta, coded;     /* of the step under way */
};

static enum http_role check_token(void *context, const char *token)
{
    struct runner *r = context;
    return token && token_equal(token, r->token) ? HTTP_ROLE_ADMIN : HTTP_ROLE_NONE;
}

static void step(void *context)
{
    struct runner *r = context;
    text_clear(&r->delta);
    state_advance(r->live.state, r->last, &r->delta, NULL);
    text_clear(&r->coded);
    text_add_base64(&r->coded, r->delta.data, r->delta.len);
}

static void after(uint64_t ns, struct event *e)
{
    struct timeval t = {.tv_sec = (time_t)(ns / 1000000000),
                        .tv_usec = (suseconds_t)(ns % 1000000000 / 1000)};
    event_add(e, &t);
}

static void on_lingered(evutil_socket_t fd, short what, void *context)
{
    struct runner *r = context;
    (void)fd;
    (void)what;
    if (r->publisher && !publisher_idle(r->publisher) && ++r->waited < PUBLISH_WAITS) {
        after(PUBLISH_WAIT, r->linger);
        return;
    }
    http_server_stop(r->live.server, GRACE_MS);
}

static void finish(struct runner *r)
{
    event_del(r->tick);
    stream_finish(r->live.stream, "end");
    if (r->publisher)
        publisher_finish(r->publisher);
    after(r->options->linger, r->linger);
}

static void stepped(void *context)
{
    struct runner *r = context;
    r->advancing = false;
    if (r->delta.len)
        stream_send(r->live.stream, "delta", r->coded.data, r->coded.len);
    if (r->last)
        finish(r);
}

static void name(void *context)
{
    struct runner *r = context;
    state_name(r->live.state);
}

static void named(void *context)
{
    struct runner *r = context;
    r->naming = false;
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct runner *r = context;
    (void)fd;
    (void)what;
    if (!r->live.state)
        return;
    if (!r->advancing) {
        r->last = r->over;
        r->advancing = http_server_work(r->live.server, step, stepped, r, NULL) == 0;
    }
    if (!r->naming && !r->over)
        r->naming = http_server_work(r->live.server, name, named, r, NULL) == 0;
}

/* The recording is there, or has ended, or the collector has died. */
static void on_told(evutil_socket_t fd, short what, void *context)
{
    struct runner *r = context;
    char said;
    (void)what;
    if (read(fd, &said, 1) == 1) {
        if (!r->live.state)
            state_new(r->options->recording, &r->live.state, NULL);
        on_tick(-1, 0, r);
        return;
    }
    event_del(r->told);
    if (!r->live.state) {
        http_server_stop(r->live.server, 0);
        return;
    }
    /* A step under way may have begun before the last block: there is one more after it. */
    r->over = true;
    struct timeval soon = {.tv_usec = 20000};
    event_add(r->tick, &soon);
}

static int open_server(struct runner *r, struct error *err)
{
    struct http_options o = {.bind = r->options->bind,
                             .port = r->options->port,
                             .no_listen = !r->options->serve,
                             .threads = THREADS,
                             .check = check_token,
                             .context = r};
    int rc = token_make(r->token, err);
    if (!rc)
        rc = http_server_new(&o, r->base, &r->live.server, err);
    if (rc)
        return rc;
    r->live.recording = r->options->recording;
    r->live.control = r->options->control;
    r->live.token = r->token;
    r->live.stream = stream_new(r->live.server, &(struct stream_options){.plain = true});
    routes_add(&r->live);
    return r->options->redis
               ? publisher_new(r->base, &r->live, r->options->redis, r->options->interval,
                               r->options->limit, &r->publisher, err)
               : 0;
}

static void say(int to, struct runner *r, int rc, const struct error *err)
{
    struct text t = TEXT_INIT;
    if (rc) {
        text_format(&t, "error %s", err->text);
    } else {
        text_add(&t, "ok ");
        if (r->options->serve) {
            http_server_address(r->live.server, &t);
            text_format(&t, "/?token=%s", r->token);
        }
    }
    io_write(to, t.data, t.len);
    close(to);
    text_release(&t);
}

static void run_loop(struct runner *r, int from)
{
    struct timeval often = {.tv_sec = 1};
    r->told = event_new(r->base, from, EV_READ | EV_PERSIST, on_told, r);
    r->tick = event_new(r->base, -1, EV_PERSIST, on_tick, r);
    r->linger = event_new(r->base, -1, 0, on_lingered, r);
    event_add(r->told, NULL);
    event_add(r->tick, &often);
    event_base_dispatch(r->base);
    event_free(r->told);
    event_free(r->tick);
    event_free(r->linger);
}

static void tell_counts(const struct runner *r, struct live_report *out)
{
    struct publish_counts counts;
    publisher_counts(r->publisher, &counts);
    out->sent = counts.sent;
    out->unsent = counts.unsent;
    memcpy(out->error, counts.error, sizeof out->error);
}

void live_main(const struct live_options *o, int from, int to)
{
    struct runner r = {.options = o, .base = event_base_new()};
    struct error err = {0};
    text_init(&r.delta);
    text_init(&r.coded);
    int rc = open_server(&r, &err);
    say(to, &r, rc, &err);
    if (!rc)
        run_loop(&r, from);
    if (r.publisher)
        tell_counts(&r, o->report);
    stream_free(r.live.stream);
    http_server_free(r.live.server);
    publisher_free(r.publisher);
    state_free(r.live.state);
    text_release(&r.delta);
    text_release(&r.coded);
    event_base_free(r.base);
}
