/*
 * A stream of events (Server-Sent Events) to any number of viewers. An event is put into bytes
 * once and shared by all. A viewer that was away and says which event it saw last gets what it
 * missed, if that is still kept; any other gets the present state first. Viewers that cannot keep
 * up are dropped, and come back by themselves as browsers do. For the loop's thread.
 */
#ifndef SONDE_SERVE_STREAM_H
#define SONDE_SERVE_STREAM_H

#include "serve/http.h"

struct stream;

struct stream_options {
    size_t history; /* bytes of events that are kept; 0: 8 MiB */
    /* Adds the present state, one JSON document; asked for at most once between two events. NULL:
     * who cannot go on gets a "reset" and fetches the state by itself. */
    void (*present)(void *context, struct text *out);
    void *context;
    bool plain; /* identifiers are 1, 2, 3 …: of a stream that ends with its server */
};

struct stream *stream_new(struct http_server *s, const struct stream_options *o);
/* Drops its viewers. NULL-safe. */
void stream_free(struct stream *t);

/* Takes the request over: call it instead of a reply, from a handler on the loop. The first event
 * is "present" (or "reset") unless the viewer can go on from Last-Event-ID (header, ?last-event-id=
 * or ?from=). */
void stream_join(struct stream *t, struct http_request *q);
/* To all viewers; `data` is one JSON document. */
void stream_send(struct stream *t, const char *event, const char *data, size_t len);
/* To all viewers, and to each that comes later: there will be nothing more. */
void stream_finish(struct stream *t, const char *event);
size_t stream_viewers(const struct stream *t);

#endif
