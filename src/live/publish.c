/* Tables to Redis, commands from it; see publish.h. What takes long runs on the pool. */
#include "live/publish.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "live/redis_wire.h"
#include "live/tables.h"

#define MESSAGE_MAX 4096

struct publisher {
    struct live *live;
    struct redis_wire *out, *in;
    struct event *timer;
    struct tables tables; /* of the pool while `making` */
    bool making, again;   /* again: once more after this */
    int32_t selected;     /* process whose memory is shown; 0: all */
    size_t asking;        /* commands under way */
    uint64_t sent, unsent;
};

static void on_published(void *context, bool sent)
{
    struct publisher *p = context;
    (*(sent ? &p->sent : &p->unsent))++;
}

static void publish(struct publisher *p, const char *channel, const struct text *t)
{
    if (t->len && !redis_wire_publish(p->out, channel, t->data, t->len))
        p->unsent++;
}

static void make_tables(void *context)
{
    struct publisher *p = context;
    tables_make(&p->tables, p->live->state);
}

static void start_tables(struct publisher *p);

static void tables_made(void *context)
{
    struct publisher *p = context;
    publish(p, "cpu_profile", &p->tables.cpu);
    publish(p, "cpu_profile_json", &p->tables.cpu_json);
    publish(p, "memory_profile_data", &p->tables.heap);
    publish(p, "memory_profile_data_json", &p->tables.heap_json);
    p->making = false;
    if (p->again)
        start_tables(p);
}

static void start_tables(struct publisher *p)
{
    p->again = p->making;
    if (p->making || !p->live->state)
        return;
    p->tables.pid = p->selected;
    p->making = http_server_work(p->live->server, make_tables, tables_made, p, NULL) == 0;
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    start_tables(context);
}

/* A message under way from Redis to the session and back. */
struct asked {
    struct publisher *publisher;
    char message[MESSAGE_MAX];
    size_t len;
    struct tables_answer answer;
};

static void ask(void *context)
{
    struct asked *a = context;
    struct live *l = a->publisher->live;
    tables_order(a->message, a->len, l->state, l->control, &a->answer);
}

static void asked(void *context)
{
    struct asked *a = context;
    struct publisher *p = a->publisher;
    if (a->answer.select >= 0)
        p->selected = a->answer.select;
    publish(p, "memory_profile_status", &a->answer.text);
    if (a->answer.select >= 0)
        start_tables(p);
    p->asking--;
    text_release(&a->answer.text);
    free(a);
}

static void on_message(void *context, const char *data, size_t len)
{
    struct publisher *p = context;
    if (len > MESSAGE_MAX || p->asking > 64)
        return; /* nobody has that much to say in good faith */
    struct asked *a = memory_alloc(sizeof *a);
    a->publisher = p;
    memcpy(a->message, data, len);
    a->len = len;
    a->answer.select = -1;
    a->answer.selected = p->selected;
    text_init(&a->answer.text);
    p->asking++;
    if (http_server_work(p->live->server, ask, asked, a, NULL) == 0)
        return;
    p->asking--;
    free(a);
}

int publisher_new(struct event_base *base, struct live *live, const char *url, uint64_t interval,
                  unsigned limit, struct publisher **out, struct error *err)
{
    struct redis_wire_options o = {.published = on_published, .message = on_message};
    int rc = redis_address_parse(url, &o.address, err);
    if (rc)
        return rc;
    struct publisher *p = memory_alloc(sizeof *p);
    struct timeval often = {.tv_sec = (time_t)(interval / 1000000000),
                            .tv_usec = (suseconds_t)(interval % 1000000000 / 1000)};
    p->live = live;
    tables_init(&p->tables, limit);
    o.context = p;
    p->out = redis_wire_new(base, &o);
    o.channel = "memory_profile";
    p->in = redis_wire_new(base, &o);
    p->timer = event_new(base, -1, EV_PERSIST, on_timer, p);
    event_add(p->timer, &often);
    *out = p;
    return 0;
}

void publisher_free(struct publisher *p)
{
    if (!p)
        return;
    event_free(p->timer);
    redis_wire_free(p->in);
    redis_wire_free(p->out);
    tables_release(&p->tables);
    free(p);
}

void publisher_finish(struct publisher *p)
{
    event_del(p->timer);
    start_tables(p);
}

bool publisher_idle(const struct publisher *p)
{
    return !p->making && !p->asking && !redis_wire_waiting(p->out);
}

void publisher_counts(const struct publisher *p, struct publish_counts *out)
{
    *out = (struct publish_counts){
        .sent = p->sent, .unsent = p->unsent, .connected = redis_wire_connected(p->out)};
    snprintf(out->error, sizeof out->error, "%s", redis_wire_error(p->out));
}
