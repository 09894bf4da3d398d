/* What the page, `sonde top` and scripts ask of a live session; see docs/LIVE.md. */
#ifndef SONDE_LIVE_ROUTES_H
#define SONDE_LIVE_ROUTES_H

#include "live/state.h"
#include "serve/stream.h"

struct live {
    struct http_server *server;
    struct stream *stream;
    struct state *state;   /* NULL until the recording is there */
    const char *recording; /* its path */
    const char *control;   /* the session's socket, or NULL */
    const char *token;
};

void routes_add(struct live *l);

#endif
