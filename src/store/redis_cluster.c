/*
 * Which node has a key: one server has all; a cluster's map of slots is read from any node that
 * answers, and again when a node says MOVED or is gone; see redis_net.h.
 */
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "store/redis_internal.h"

#define ATTEMPTS 8

unsigned redis_slot(const char *key)
{
    size_t len = strlen(key);
    const char *open = strchr(key, '{'), *close = open ? strchr(open + 1, '}') : NULL;
    if (close && close > open + 1) {
        key = open + 1;
        len = (size_t)(close - key);
    }
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff;
    }
    return crc % REDIS_SLOTS;
}

static size_t node_of(struct redis_net *l, const char *host, unsigned port)
{
    for (size_t i = 0; i < l->nodes.len; i++)
        if (l->nodes.data[i]->port == port && !strcmp(l->nodes.data[i]->host, host))
            return i;
    struct redis_node *n = memory_alloc(sizeof *n);
    snprintf(n->host, sizeof n->host, "%s", host);
    n->port = port;
    n->fd = -1;
    *vector_push(&l->nodes) = n;
    return l->nodes.len - 1;
}

static int64_t integer(const redisReply *r)
{
    return r->type == REDIS_REPLY_INTEGER ? r->integer : -1;
}

/* [first, last, [host, port, …], replicas…] */
static void take_range(struct redis_net *l, const struct redis_node *from, const redisReply *r)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements < 3)
        return;
    const redisReply *master = r->element[2];
    int64_t first = integer(r->element[0]), last = integer(r->element[1]);
    if (first < 0 || last >= REDIS_SLOTS || master->type != REDIS_REPLY_ARRAY ||
        master->elements < 2)
        return;
    const redisReply *host = master->element[0];
    /* A node that does not know its own address means the one that was asked. */
    const char *name = host->type == REDIS_REPLY_STRING && host->len && host->str[0] != '?'
                           ? host->str
                           : from->host;
    size_t at = node_of(l, name, (unsigned)integer(master->element[1]));
    l->nodes.data[at]->replicas = (unsigned)(r->elements - 3);
    for (int64_t slot = first; slot <= last; slot++)
        l->slot[slot] = (uint16_t)at;
}

static int read_map(struct redis_net *l, struct redis_node *n, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "CLUSTER");
    redis_word(&c, "SLOTS");
    int rc = redis_node_connect(l, n, err);
    if (!rc)
        rc = redis_node_ask(n, &c, &r, err);
    if (!rc && r->type != REDIS_REPLY_ARRAY)
        rc = error_set(err, FAULT_SYSTEM, "the Redis cluster has no map of its slots");
    for (size_t i = 0; !rc && i < r->elements; i++)
        take_range(l, n, r->element[i]);
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

/* From whichever node answers. */
static int refresh(struct redis_net *l, struct error *err)
{
    int rc = FAULT_SYSTEM;
    size_t known = l->nodes.len;
    for (size_t i = 0; rc && i < known; i++)
        rc = read_map(l, l->nodes.data[i], err);
    return rc;
}

static int is_cluster(struct redis_net *l, struct error *err)
{
    struct redis_command c = {0};
    struct redis_node *n = l->nodes.data[0];
    redisReply *r = NULL;
    redis_word(&c, "INFO");
    redis_word(&c, "server");
    int rc = redis_node_connect(l, n, err);
    if (!rc)
        rc = redis_node_ask(n, &c, &r, err);
    if (!rc && r->type == REDIS_REPLY_ERROR)
        rc = error_set(err, strncmp(r->str, "NOAUTH", 6) ? FAULT_SYSTEM : FAULT_USAGE,
                       "Redis at %s:%u: %s", n->host, n->port, r->str);
    if (!rc && r->type == REDIS_REPLY_STRING)
        l->clustered = strstr(r->str, "redis_mode:cluster") != NULL;
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

static int set_up_tls(struct redis_net *l, struct error *err)
{
    l->tls = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(l->tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(l->tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int ok = *l->url.ca ? SSL_CTX_load_verify_locations(l->tls, l->url.ca, NULL)
                        : SSL_CTX_set_default_verify_paths(l->tls);
    return ok == 1 ? 0
                   : error_set(err, FAULT_USAGE, "cannot read the certificates in %s", l->url.ca);
}

int redis_net_open(const char *url, bool tls, struct redis_net **out, struct error *err)
{
    struct redis_net *l = memory_alloc(sizeof *l);
    int rc = store_url_parse(url, 6379, &l->url, err);
    if (!rc && tls)
        rc = set_up_tls(l, err);
    if (!rc) {
        node_of(l, l->url.host, l->url.port);
        rc = is_cluster(l, err);
    }
    if (!rc && l->clustered)
        rc = refresh(l, err);
    if (rc)
        redis_net_free(l);
    else
        *out = l;
    return rc;
}

void redis_net_free(struct redis_net *l)
{
    for (size_t i = 0; i < l->nodes.len; i++) {
        redis_node_close(l->nodes.data[i]);
        free(l->nodes.data[i]);
    }
    vector_release(&l->nodes);
    if (l->tls)
        SSL_CTX_free(l->tls);
    store_url_release(&l->url);
    free(l);
}

bool redis_net_clustered(const struct redis_net *l)
{
    return l->clustered;
}

/* "MOVED 3999 127.0.0.1:6381": the node, or NULL. */
static struct redis_node *redirected(struct redis_net *l, const char *text, const char *from)
{
    const char *place = strchr(text, ' ');
    place = place ? strchr(place + 1, ' ') : NULL;
    const char *colon = place ? strrchr(place, ':') : NULL;
    char host[256];
    if (!colon)
        return NULL;
    snprintf(host, sizeof host, "%.*s", (int)(colon - place - 1), place + 1);
    return l->nodes.data[node_of(l, *host ? host : from, (unsigned)strtoul(colon + 1, NULL, 10))];
}

static int fault_of(const struct redis_node *n, const redisReply *r, struct error *err)
{
    enum fault fault = !strncmp(r->str, "OOM", 3) ? FAULT_LIMIT
                       : !strncmp(r->str, "NOAUTH", 6) || !strncmp(r->str, "NOPERM", 6)
                           ? FAULT_USAGE
                           : FAULT_SYSTEM;
    return error_set(err, fault, "Redis at %s:%u: %s", n->host, n->port, r->str);
}

static bool passes(const redisReply *r)
{
    return !strncmp(r->str, "TRYAGAIN", 8) || !strncmp(r->str, "CLUSTERDOWN", 11) ||
           !strncmp(r->str, "LOADING", 7) || !strncmp(r->str, "MASTERDOWN", 10) ||
           !strncmp(r->str, "READONLY", 8);
}

static int say_asking(struct redis_net *l, struct redis_node *n, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    int rc = redis_node_connect(l, n, err);
    redis_word(&c, "ASKING");
    if (!rc)
        rc = redis_node_ask(n, &c, &r, err);
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

/* One attempt: 0 with the answer, 1 to try again at *n, or a fault. */
static int attempt(struct redis_net *l, struct redis_node **n, bool *asking,
                   const struct redis_command *c, redisReply **out, struct error *err)
{
    redisReply *r = NULL;
    int rc = *asking ? say_asking(l, *n, err) : redis_node_connect(l, *n, err);
    if (!rc)
        rc = redis_node_ask(*n, c, &r, err);
    *asking = false;
    if (rc)
        return rc;
    if (r->type != REDIS_REPLY_ERROR || !strncmp(r->str, "NOSCRIPT", 8)) {
        *out = r;
        return 0;
    }
    bool moved = !strncmp(r->str, "MOVED ", 6), ask = !strncmp(r->str, "ASK ", 4);
    struct redis_node *to = moved || ask ? redirected(l, r->str, (*n)->host) : NULL;
    if (moved)
        refresh(l, &(struct error){0});
    rc = to ? 1 : fault_of(*n, r, err);
    if (!to && passes(r) && l->clustered)
        rc = 2;
    freeReplyObject(r);
    *n = to ? to : *n;
    *asking = ask;
    return rc;
}

static struct redis_node *owner(struct redis_net *l, const char *key)
{
    return l->nodes.data[l->clustered ? l->slot[redis_slot(key)] : 0];
}

int redis_call(struct redis_net *l, const char *key, struct redis_command *c, redisReply **out,
               struct error *err)
{
    struct redis_node *n = owner(l, key);
    bool asking = false;
    int rc = FAULT_SYSTEM;
    for (int i = 0; i < ATTEMPTS; i++) {
        rc = attempt(l, &n, &asking, c, out, err);
        if (rc == 0 || (rc < 0 && rc != FAULT_SYSTEM))
            break;
        if (rc == 1)
            continue;
        if (!l->clustered && i)
            break; /* connected anew once: it is away */
        if (l->clustered) {
            const struct timespec pause = {.tv_nsec = 20000000L << (i < 5 ? i : 5)};
            nanosleep(&pause, NULL);
            refresh(l, &(struct error){0});
            n = owner(l, key);
        }
    }
    redis_command_clear(c);
    return rc > 0
               ? error_set(err, FAULT_SYSTEM, "the Redis cluster does not settle who has %s", key)
               : rc;
}

int redis_script(struct redis_net *l, const char *key, const char *script, struct redis_command *c,
                 redisReply **out, struct error *err)
{
    unsigned char hash[SHA_DIGEST_LENGTH];
    char hex[2 * SHA_DIGEST_LENGTH + 1];
    SHA1((const unsigned char *)script, strlen(script), hash);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    for (int turn = 0;; turn++) {
        struct redis_command whole = {0};
        redis_word(&whole, turn ? "EVAL" : "EVALSHA");
        redis_word(&whole, turn ? script : hex);
        for (size_t i = 0; i < c->words.len; i++)
            redis_bytes(&whole, c->words.data[i], c->lens.data[i]);
        int rc = redis_call(l, key, &whole, out, err);
        redis_command_release(&whole);
        bool unknown = !rc && (*out)->type == REDIS_REPLY_ERROR;
        if (unknown && turn == 0) {
            freeReplyObject(*out);
            continue;
        }
        redis_command_clear(c);
        return rc;
    }
}

int redis_settle(struct redis_net *l, const char *key, struct error *err)
{
    struct redis_node *n = owner(l, key);
    struct redis_command c = {0};
    redisReply *r = NULL;
    if (!n->replicas || n->fd < 0)
        return 0;
    redis_word(&c, "WAIT");
    redis_number(&c, 1);
    redis_number(&c, 500);
    int rc = redis_node_ask(n, &c, &r, err);
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}
