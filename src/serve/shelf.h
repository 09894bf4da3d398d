/*
 * The page of the server of jobs: its files, and recordings that jobs have kept as documents of the
 * page (docs/PAGE.md). The recording that was asked for last stays open, since who looks at its
 * timeline asks for one window after the other.
 */
#ifndef SONDE_SERVE_SHELF_H
#define SONDE_SERVE_SHELF_H

#include "serve/jobs.h"

struct shelf;

struct shelf *shelf_new(struct jobs *jobs);
void shelf_free(struct shelf *s); /* NULL-safe */

/* Their context is the shelf. The last takes every path, so they come after all others. */
extern const struct http_route shelf_routes[];
size_t shelf_route_count(void);

#endif
