/*
 * Who may ask: the name by which we are called (a page from elsewhere whose name was made to point
 * at us uses its own), the page a request comes from, the token, and how often.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "serve/http_internal.h"

#define ADDRESSES_MAX 65536
#define COST_OF_WRONG_TOKEN 0.05 /* of a second's allowance */

/* "[::1]:80" -> "::1", "localhost:80" -> "localhost"; false if it is no such thing. */
static bool host_name(const char *host, char *out, size_t size)
{
    bool bracket = *host == '[';
    size_t len = strcspn(host + bracket, bracket ? "]" : ":");
    const char *rest = host + bracket + len + bracket;
    if (!len || len >= size || (bracket && rest[-1] != ']'))
        return false;
    if (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1)))
        return false;
    memcpy(out, host + bracket, len);
    out[len] = 0;
    return true;
}

static bool host_is_ours(const struct http_server *s, const char *host)
{
    char name[256];
    unsigned char address[16];
    if (!host_name(host, name, sizeof name))
        return false;
    if (strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1 ||
        inet_pton(AF_INET6, name, address) == 1)
        return true;
    for (const char *const *h = s->options.hosts; h && *h; h++)
        if (strcasecmp(name, *h) == 0)
            return true;
    return false;
}

int guard_check_origin(struct http_request *q)
{
    const char *origin = head_header(&q->head, "origin");
    if (!host_is_ours(q->server, q->head.host)) {
        http_reply_error(q, 421,
                         "this server does not answer under the name in Host; call it by its "
                         "address, or add the name to its hosts");
        return -1;
    }
    if (!origin)
        return 0;
    char ours[300];
    snprintf(ours, sizeof ours, "%s://%s", q->server->tls ? "https" : "http", q->head.host);
    if (strcasecmp(origin, ours) == 0)
        return 0;
    http_reply_error(q, 403, "requests from pages of other origins are refused");
    return -1;
}

/* The cookie is named after the port: browsers give cookies to every port of a host. */
static const char *cookie_of(const struct http_request *q, char *out, size_t size)
{
    char name[32];
    const char *cookie = head_header(&q->head, "cookie");
    int len = snprintf(name, sizeof name, "sonde-%u=", q->server->port);
    for (const char *at = cookie; at && *at;) {
        at += strspn(at, "; ");
        size_t whole = strcspn(at, ";");
        if (strncmp(at, name, (size_t)len) == 0 && whole - (size_t)len < size) {
            memcpy(out, at + len, whole - (size_t)len);
            out[whole - (size_t)len] = 0;
            return out;
        }
        at += whole;
    }
    return NULL;
}

/* A cookie comes along with whatever any page makes the browser send: what changes something must
 * then say that it comes from a page of ours. */
static bool cookie_suffices(const struct http_request *q)
{
    return q->head.method == HTTP_GET || q->head.method == HTTP_HEAD ||
           head_header(&q->head, "origin");
}

static enum http_role role_of(struct http_request *q, bool *given)
{
    char kept[256];
    const struct http_options *o = &q->server->options;
    const char *header = head_header(&q->head, "authorization");
    const char *token = header && strncasecmp(header, "bearer ", 7) == 0 ? header + 7 : NULL;
    const char *query = token ? NULL : head_query(&q->head, "token");
    const char *cookie = token || query ? NULL : cookie_of(q, kept, sizeof kept);
    if (cookie && !cookie_suffices(q))
        cookie = NULL;
    token = token ? token : query ? query : cookie;
    *given = token != NULL;
    enum http_role role = o->check(o->context, token);
    q->set_cookie = role && query;
    return role;
}

int guard_check_token(struct http_request *q)
{
    struct http_server *s = q->server;
    bool given = false;
    if (!limiter_take(s->limiter, q->connection->address, 1.0 / s->options.rate)) {
        http_reply_header(q, "Retry-After", "1");
        http_reply_error(q, 429, "too many requests from %s: try again in a second",
                         q->connection->peer);
        return -1;
    }
    q->role = s->options.check ? role_of(q, &given) : HTTP_ROLE_ADMIN;
    enum http_role needed = q->route ? q->route->role : HTTP_ROLE_READ;
    if (q->role >= needed)
        return 0;
    if (given && !q->role)
        limiter_take(s->limiter, q->connection->address, COST_OF_WRONG_TOKEN);
    if (q->role) {
        http_reply_error(q, 403, "this token may not do that");
        return -1;
    }
    http_reply_header(q, "WWW-Authenticate", "Bearer");
    http_reply_error(q, 401,
                     given ? "this token is not known here"
                           : "a token is needed: send it as 'Authorization: Bearer TOKEN' or as "
                             "?token=TOKEN");
    return -1;
}

/* How much an address has left, in seconds of its allowance: at most two. */
struct bucket {
    double left;
    uint64_t time;
};

struct limiter {
    struct map left; /* address -> index */
    VECTOR(struct bucket) buckets;
};

struct limiter *limiter_new(void)
{
    return memory_alloc(sizeof(struct limiter));
}

void limiter_free(struct limiter *l)
{
    if (!l)
        return;
    map_release(&l->left);
    vector_release(&l->buckets);
    free(l);
}

bool limiter_take(struct limiter *l, const uint8_t address[16], double cost)
{
    uint64_t key[2], now = clock_now();
    bool added;
    memcpy(key, address, sizeof key);
    if (l->buckets.len >= ADDRESSES_MAX) {
        map_clear(&l->left);
        l->buckets.len = 0;
    }
    uint64_t at = *map_put(&l->left, key[0], key[1], l->buckets.len, &added);
    if (added)
        *vector_push(&l->buckets) = (struct bucket){.left = 2, .time = now};
    struct bucket *b = &l->buckets.data[at];
    b->left += (double)(now - b->time) / 1e9;
    b->left = b->left > 2 ? 2 : b->left;
    b->time = now;
    if (b->left < cost)
        return false;
    b->left -= cost;
    return true;
}
