/*
 * The routes of jobs: docs/API.md is their contract. The context of all of them is a struct jobs.
 */
#ifndef SONDE_SERVE_JOBS_H
#define SONDE_SERVE_JOBS_H

#include "serve/recall.h"
#include "serve/http.h"
#include "serve/ledger.h"

struct jobs {
    struct ledger *ledger;
    struct recall *recall;            /* for when the store is away */
    const struct http_server *server; /* for /metrics */
    size_t rows_max;                  /* of one answer */
    uint64_t started;                 /* monotonic ns */
    struct event_base *base;          /* of the server's loop */
    struct scrape *scrapes;           /* requests that wait; of the loop's thread */
    unsigned scrape_count;
    bool stopping;
};

/* Lets go of requests that wait; after the loop has ended and before the server is freed. */
void jobs_stop(struct jobs *j);

extern const struct http_route jobs_routes[];
size_t jobs_route_count(void);

#endif
