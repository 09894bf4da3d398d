/* A connection to Redis; see redis_wire.h. */
#include "live/redis_wire.h"

#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define WAITING_MAX 32
#define RETRY_MIN 250  /* ms */
#define RETRY_MAX 2000 /* ms */

struct redis_wire {
    struct redis_wire_options options;
    struct event_base *base;
    struct event *retry;
    redisAsyncContext *redis; /* NULL while there is none */
    bool connected, closing;
    unsigned delay; /* ms to the next try */
    size_t waiting;
    char error[200];
};

/* Cuts `text` at its last `mark` and returns what follows, or NULL. */
static char *cut_at(char *text, char mark)
{
    char *at = strrchr(text, mark);
    if (at)
        *at++ = 0;
    return at;
}

static bool copy(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size)
        return false;
    memcpy(out, text, len + 1);
    return true;
}

static bool parse_number(const char *text, unsigned long max, unsigned long *out)
{
    char *end;
    *out = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *out <= max;
}

static bool parse_parts(char *rest, struct redis_address *out)
{
    unsigned long port = 6379, database = 0;
    char *slash = strchr(rest, '/');
    if (slash)
        *slash++ = 0;
    if (slash && *slash && !parse_number(slash, 65535, &database))
        return false;
    char *host = cut_at(rest, '@');
    if (host) {
        char *password = strchr(rest, ':');
        if (password)
            *password++ = 0;
        if (!copy(out->user, sizeof out->user, password ? rest : "") ||
            !copy(out->password, sizeof out->password, password ? password : rest))
            return false;
    } else {
        host = rest;
    }
    char *bracket = *host == '[' ? strchr(host, ']') : NULL;
    char *number = bracket ? (bracket[1] == ':' ? bracket + 2 : NULL) : cut_at(host, ':');
    if (bracket) {
        *bracket = 0;
        host++;
    }
    if (number && !parse_number(number, 65535, &port))
        return false;
    out->port = (uint16_t)port;
    out->database = (unsigned)database;
    return copy(out->host, sizeof out->host, *host ? host : "127.0.0.1");
}

int redis_address_parse(const char *url, struct redis_address *out, struct error *err)
{
    *out = (struct redis_address){0};
    bool good = strncmp(url, "redis://", 8) == 0;
    char *rest = memory_strdup(good ? url + 8 : "");
    good = good && parse_parts(rest, out);
    free(rest);
    if (good)
        return 0;
    return error_set(err, FAULT_USAGE,
                     "a Redis server is named redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]");
}

static void lose(struct redis_wire *l, const char *why)
{
    snprintf(l->error, sizeof l->error, "%s", why && *why ? why : "the connection was closed");
    l->redis = NULL;
    l->connected = false;
    if (l->closing)
        return;
    struct timeval t = {.tv_sec = l->delay / 1000,
                        .tv_usec = (suseconds_t)(l->delay % 1000) * 1000};
    event_add(l->retry, &t);
    l->delay = l->delay * 2 < RETRY_MAX ? l->delay * 2 : RETRY_MAX;
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
    struct redis_wire *l = redis->data;
    if (l->redis == redis)
        lose(l, status == REDIS_OK ? "" : redis->errstr);
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct redis_wire *l = redis->data;
    if (status != REDIS_OK) { /* hiredis frees it after this */
        lose(l, redis->errstr);
        return;
    }
    l->connected = true;
    l->delay = RETRY_MIN;
}

/* AUTH, SELECT: what the server has against it is told, and the link tries again later. */
static void on_greeting(redisAsyncContext *redis, void *reply, void *context)
{
    struct redis_wire *l = redis->data;
    redisReply *r = reply;
    (void)context;
    if (!r || r->type != REDIS_REPLY_ERROR || l->redis != redis)
        return;
    char why[200];
    snprintf(why, sizeof why, "%s", r->str);
    lose(l, why);
    redisAsyncDisconnect(redis);
}

static void on_message(redisAsyncContext *redis, void *reply, void *context)
{
    struct redis_wire *l = redis->data;
    redisReply *r = reply;
    (void)context;
    if (!r || l->closing || r->type != REDIS_REPLY_ARRAY || r->elements != 3)
        return;
    if (r->element[0]->type == REDIS_REPLY_STRING && strcmp(r->element[0]->str, "message") == 0 &&
        r->element[2]->type == REDIS_REPLY_STRING)
        l->options.message(l->options.context, r->element[2]->str, r->element[2]->len);
}

static void greet(struct redis_wire *l)
{
    const struct redis_address *a = &l->options.address;
    if (a->user[0])
        redisAsyncCommand(l->redis, on_greeting, NULL, "AUTH %s %s", a->user, a->password);
    else if (a->password[0])
        redisAsyncCommand(l->redis, on_greeting, NULL, "AUTH %s", a->password);
    if (a->database)
        redisAsyncCommand(l->redis, on_greeting, NULL, "SELECT %u", a->database);
    if (l->options.channel)
        redisAsyncCommand(l->redis, on_message, NULL, "SUBSCRIBE %s", l->options.channel);
}

static void try_to_connect(evutil_socket_t fd, short what, void *context)
{
    struct redis_wire *l = context;
    (void)fd;
    (void)what;
    redisAsyncContext *redis = redisAsyncConnect(l->options.address.host, l->options.address.port);
    if (!redis || redis->err) {
        lose(l, redis ? redis->errstr : "no memory");
        if (redis)
            redisAsyncFree(redis);
        return;
    }
    redis->data = l;
    l->redis = redis;
    redisLibeventAttach(redis, l->base);
    redisAsyncSetConnectCallback(redis, on_connect);
    redisAsyncSetDisconnectCallback(redis, on_disconnect);
    greet(l);
}

struct redis_wire *redis_wire_new(struct event_base *base, const struct redis_wire_options *o)
{
    struct redis_wire *l = memory_alloc(sizeof *l);
    l->options = *o;
    l->base = base;
    l->delay = RETRY_MIN;
    l->retry = evtimer_new(base, try_to_connect, l);
    try_to_connect(-1, 0, l);
    return l;
}

void redis_wire_free(struct redis_wire *l)
{
    if (!l)
        return;
    l->closing = true;
    if (l->redis)
        redisAsyncFree(l->redis);
    event_free(l->retry);
    free(l);
}

static void on_published(redisAsyncContext *redis, void *reply, void *context)
{
    struct redis_wire *l = redis->data;
    redisReply *r = reply;
    (void)context;
    l->waiting--;
    l->options.published(l->options.context, r && r->type == REDIS_REPLY_INTEGER);
}

bool redis_wire_publish(struct redis_wire *l, const char *channel, const void *data, size_t len)
{
    if (!l->connected || l->waiting >= WAITING_MAX)
        return false;
    if (redisAsyncCommand(l->redis, on_published, NULL, "PUBLISH %s %b", channel, data, len) !=
        REDIS_OK)
        return false;
    l->waiting++;
    return true;
}

bool redis_wire_connected(const struct redis_wire *l)
{
    return l->connected;
}

size_t redis_wire_waiting(const struct redis_wire *l)
{
    return l->waiting;
}

const char *redis_wire_error(const struct redis_wire *l)
{
    return l->error;
}
