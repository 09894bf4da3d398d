/* The server's insides: server.c (life, listening), connection.c (bytes), request.c (what handlers
 * see), guard.c (who may), stream.c (viewers), work.c (the pool). */
#ifndef SONDE_SERVE_HTTP_INTERNAL_H
#define SONDE_SERVE_HTTP_INTERNAL_H

#include <event2/bufferevent.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/vector.h"
#include "serve/chunks.h"
#include "serve/http.h"

#define PARAMS_MAX 8

struct route_table {
    const struct http_route *routes;
    size_t count;
    void *context;
};

struct pool;
struct limiter;

struct http_server {
    struct http_options options; /* with the usual values filled in */
    struct event_base *base;
    struct evconnlistener *listener;
    SSL_CTX *tls;
    VECTOR(struct route_table) tables;
    struct connection *first, *last; /* oldest first */
    struct http_counts counts;
    struct pool *pool;
    struct limiter *limiter;
    struct event *stopping; /* ends what has not ended by itself */
    uint64_t stop_at;
    uint16_t port;
    char host[64]; /* as bound, IPv6 in brackets */
    bool stopped;
};

enum connection_state {
    CONNECTION_HEAD,    /* waits for a request */
    CONNECTION_BODY,    /* reads its body */
    CONNECTION_HANDLED, /* someone makes the answer */
    CONNECTION_SENDING, /* the answer goes out */
    CONNECTION_VIEWER,  /* a stream goes out */
    CONNECTION_LINGER,  /* all is sent; what still comes in is thrown away */
};

struct connection {
    struct http_server *server;
    struct connection *before, *after;
    struct bufferevent *bev;
    struct event *deadline;
    enum connection_state state;
    struct http_request *request; /* from BODY on */
    struct viewer *viewer;
    char peer[64];
    uint8_t address[16]; /* for the limiter */
    bool ended;          /* nothing more will come in */
};

struct http_request {
    struct connection *connection; /* NULL once the client is gone */
    struct http_server *server;
    char *head_bytes;
    struct head head;
    struct text body;
    struct chunks chunks;
    uint64_t body_left;
    const struct http_route *route;
    void *context;
    struct head_pair params[PARAMS_MAX];
    size_t param_count;
    char *param_bytes;
    enum http_role role;
    uint64_t start, wall;
    char peer[64];
    bool held, streaming, close, set_cookie;
    bool gone; /* atomic */
    /* The answer. */
    int status;
    const char *type;
    struct text reply;
    const void *fixed; /* instead of `reply` */
    size_t fixed_len;
    void (*release)(void *context); /* of `fixed`, or NULL */
    void *release_context;
    int fd; /* or -1 */
    uint64_t fd_len;
    struct text headers;
};

/* connection.c */
void connection_new(struct http_server *s, evutil_socket_t fd, const struct sockaddr *address);
void connection_free(struct connection *c);
void connection_deadline(struct connection *c, unsigned seconds);
/* The request's answer is complete: sends it. */
void connection_answer(struct http_request *q);

/* request.c */
struct http_request *request_new(struct connection *c);
void request_free(struct http_request *q);
/* Nobody needs what http_reply_shared was given any more. */
void request_release(struct http_request *q);
/* Picks the route, checks who asks, and runs the handler; may answer before it returns. */
void request_dispatch(struct http_request *q);
/* Before the body: 0, or the answer is a refusal already. */
int request_admit(struct http_request *q);
/* The head of the answer, with its last empty line. */
void request_write_head(const struct http_request *q, struct text *out);
void request_log(const struct http_request *q);

/* guard.c: 0, or the answer is a refusal already. */
int guard_check_origin(struct http_request *q);
int guard_check_token(struct http_request *q);
struct limiter *limiter_new(void);
void limiter_free(struct limiter *l);
/* May this address go on? Takes `cost` from what it has. */
bool limiter_take(struct limiter *l, const uint8_t address[16], double cost);

/* route.c */
const struct http_route *route_find(const struct http_server *s, struct http_request *q,
                                    unsigned *allowed, void **context);

/* work.c */
struct pool *pool_new(struct event_base *base, unsigned threads);
/* Waits for what is under way. NULL-safe. */
void pool_free(struct pool *p);
void pool_post(struct pool *p, void (*fn)(void *), void *context);
bool pool_add(struct pool *p, void (*work)(void *), void (*done)(void *), void *context);

/* inflate.c: `in` into `out`, which stays within `max`; 0 or an HTTP status with a sentence. */
int inflate_body(const char *encoding, const struct text *in, size_t max, struct text *out,
                 const char **why);

/* stream.c */
void viewer_gone(struct viewer *v);

#endif
