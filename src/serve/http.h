/*
 * The HTTP server that everything served by sonde stands on: one loop (libevent), routes from a
 * table, limits on all that comes from outside, a token for every route.
 *
 *     http_server_new(&options, base, &server, err);
 *     http_server_routes(server, routes, count, context);
 *     event_base_dispatch(base);          // until http_server_stop has run its course
 *     http_server_free(server);
 *
 * All functions are for the loop's thread, but where it says otherwise. A handler answers with one
 * of the http_reply functions before it returns; or its route is `threaded` and it runs on a
 * thread of the pool, where it may block; or it calls http_hold and someone calls http_done later.
 * A handler on the loop must never block. What a handler gets from a request lives until the
 * request has been answered.
 */
#ifndef SONDE_SERVE_HTTP_H
#define SONDE_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "serve/head.h"

struct event_base;
struct http_server;
struct http_request;

/* Each may do what the ones before it may. */
enum http_role { HTTP_ROLE_NONE, HTTP_ROLE_READ, HTTP_ROLE_WRITE, HTTP_ROLE_ADMIN };

typedef void http_handler_fn(struct http_request *q, void *context);

struct http_route {
    unsigned methods;    /* of enum http_method; HTTP_GET answers HEAD as well */
    const char *pattern; /* "/api/jobs/{id}/rows"; a last part "*" takes all that follows */
    enum http_role role; /* that a token needs; HTTP_ROLE_NONE: open to anyone */
    http_handler_fn *handle;
    bool threaded;   /* runs on the pool, its body is inflated there */
    size_t body_max; /* 0: the server's */
};

/* What is said of each answer: a line of the log. `path` is without the query, where tokens are. */
struct http_entry {
    uint64_t time;     /* wall clock, ns */
    uint64_t duration; /* ns */
    const char *peer;
    const char *method, *path;
    int status;
    uint64_t bytes;
    enum http_role role;
};

struct http_options {
    const char *bind;               /* NULL: 127.0.0.1; an address, not a name */
    uint16_t port;                  /* 0: any free one */
    const char *tls_cert, *tls_key; /* PEM files; both or none */
    const char *const *hosts;       /* names by which clients may call it, NULL-terminated, or NULL:
                                       addresses and "localhost" are always among them; it must
                                       outlive the server */
    size_t head_max;                /* bytes; 0 for the usual, as with all that follow */
    size_t body_max;                /* as sent */
    size_t inflated_max;            /* after decompression */
    unsigned connections_max;
    unsigned rate; /* requests a second of one address, with bursts of twice that */
    unsigned head_seconds, body_seconds, idle_seconds; /* how slow a client may be */
    bool no_listen;                                    /* nobody is served: the pool and no more */
    unsigned threads;                                  /* of the pool */
    size_t viewer_lag; /* bytes that a viewer of a stream may be behind */
    /* Whose token is it? HTTP_ROLE_NONE for nobody's; the token is NULL where none was given. Must
     * take the same time for every wrong one (see token.h). NULL: every route is open, which only
     * tests want. */
    enum http_role (*check)(void *context, const char *token);
    void (*log)(void *context, const struct http_entry *e); /* or NULL */
    void *context;
};

struct http_counts {
    uint64_t accepted, refused_connections, requests, answered[6] /* by status / 100 */;
    uint64_t bytes_in, bytes_out, viewers_dropped;
    unsigned connections, viewers;
};

/* Listens at once; FAULT_SYSTEM when it cannot, FAULT_INPUT when certificate or key are no good. */
int http_server_new(const struct http_options *o, struct event_base *base, struct http_server **out,
                    struct error *err);
/* The table must outlive the server. Earlier routes win. */
void http_server_routes(struct http_server *s, const struct http_route *routes, size_t count,
                        void *context);
uint16_t http_server_port(const struct http_server *s);
/* "http://127.0.0.1:1234", for people. */
void http_server_address(const struct http_server *s, struct text *out);
const struct http_counts *http_server_counts(const struct http_server *s);
/* No new connections; what is under way is finished, for at most `grace` ms; then the loop ends. */
void http_server_stop(struct http_server *s, unsigned grace);
/* After the loop has ended. NULL-safe. */
void http_server_free(struct http_server *s);

/* From any thread: runs fn on the loop's. */
void http_server_post(struct http_server *s, void (*fn)(void *context), void *context);
/* From the loop: runs `work` on the pool, then `done` on the loop. FAULT_LIMIT when too much waits
 * already; neither has run then. */
int http_server_work(struct http_server *s, void (*work)(void *context),
                     void (*done)(void *context), void *context, struct error *err);

/* The request. Strings are decoded and terminated; NULL where there is none. */
enum http_method http_method(const struct http_request *q);
const char *http_path(const struct http_request *q);
const char *http_param(const struct http_request *q, const char *name); /* {name} or "*" */
const char *http_query(const struct http_request *q, const char *key);
const char *http_header(const struct http_request *q, const char *name);
/* The body, inflated if it came compressed; a NUL follows it. */
const char *http_body(const struct http_request *q, size_t *len);
enum http_role http_role_of(const struct http_request *q);
const char *http_peer(const struct http_request *q);
struct http_server *http_server_of(const struct http_request *q);
/* Has the client gone, or does it at least say nothing more? For any thread. */
bool http_gone(const struct http_request *q);

/* The answer, from the handler's thread; the last one said holds. */
void http_reply(struct http_request *q, int status, const char *type, const void *data, size_t len);
/* Takes the text over: it is empty after. */
void http_reply_text(struct http_request *q, int status, const char *type, struct text *body);
/* {"error": "the sentence", "status": 404} */
void http_reply_error(struct http_request *q, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, with the status that fits the fault. */
void http_reply_fault(struct http_request *q, const struct error *err);
/* The whole file, from where its descriptor stands; takes fd over. */
void http_reply_file(struct http_request *q, int fd, const char *type);
/* Data that stays as it is until the server is freed, such as the page's files. */
void http_reply_static(struct http_request *q, int status, const char *type, const void *data,
                       size_t len);
/* Data that many answers share: `release` is called when this one has been sent or given up, on
 * the loop's thread. */
void http_reply_shared(struct http_request *q, int status, const char *type, const void *data,
                       size_t len, void (*release)(void *context), void *context);
/* Another header; values with control characters are left out. */
void http_reply_header(struct http_request *q, const char *name, const char *value);

/* What was said so far, if it is text of the request's own; false otherwise. */
bool http_said(const struct http_request *q, int *status, const char **type, const char **data,
               size_t *len);

/* The handler returns without an answer; http_done sends what was said meanwhile, exactly once. If
 * the client has gone, http_done frees what is left all the same. */
void http_hold(struct http_request *q);
void http_done(struct http_request *q);

#endif
