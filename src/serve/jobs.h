/*
 * The routes of jobs: docs/API.md is their contract. The context of all of them is a struct jobs.
 */
#ifndef SONDE_SERVE_JOBS_H
#define SONDE_SERVE_JOBS_H

#include "serve/applications.h"
#include "serve/recall.h"
#include "serve/http.h"
#include "serve/ledger.h"
#include "serve/stream.h"

struct jobs {
    struct ledger *ledger;
    struct recall *recall; /* for when the store is away */
    struct applications *applications;
    struct http_server *server;
    size_t rows_max;         /* of one answer */
    uint64_t query_time;     /* ns that one question may take; 0: any time */
    uint64_t started;        /* monotonic ns */
    struct event_base *base; /* of the server's loop */
    struct stream *stream;   /* of what is added */
    struct scrape *scrapes;  /* requests that wait; of the loop's thread */
    unsigned scrape_count;
    bool stopping;
};

/* Tells whoever watches of batches: a ledger_added_fn, the context being the jobs. */
void jobs_added(void *context, struct batch *const *batches, size_t count);
/* Lets go of requests that wait; after the loop has ended and before the server is freed. */
void jobs_stop(struct jobs *j);

extern const struct http_route jobs_routes[];
size_t jobs_route_count(void);

#endif
