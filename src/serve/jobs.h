/*
 * The routes of jobs: docs/API.md is their contract. The context of all of them is a struct jobs.
 */
#ifndef SONDE_SERVE_JOBS_H
#define SONDE_SERVE_JOBS_H

#include "serve/http.h"
#include "serve/ledger.h"

struct jobs {
    struct ledger *ledger;
    const struct http_server *server; /* for /metrics */
    size_t rows_max;                  /* of one answer */
    uint64_t started;                 /* monotonic ns */
};

extern const struct http_route jobs_routes[];
size_t jobs_route_count(void);

#endif
