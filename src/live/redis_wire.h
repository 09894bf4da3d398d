/*
 * A connection to Redis on the loop that comes back by itself: nothing waits for it, and what
 * cannot be sent now is refused, so that a server that is away or slow costs no memory.
 */
#ifndef SONDE_LIVE_REDIS_WIRE_H
#define SONDE_LIVE_REDIS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct redis_wire;

struct redis_address {
    char host[256], user[128], password[256];
    uint16_t port;
    unsigned database;
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]; FAULT_USAGE says what is wrong. */
int redis_address_parse(const char *url, struct redis_address *out, struct error *err);

struct redis_wire_options {
    struct redis_address address;
    const char *channel; /* to listen to, or NULL: then it may publish */
    void (*message)(void *context, const char *data, size_t len);
    /* A message has gone to the server, or is lost. */
    void (*published)(void *context, bool sent);
    void *context;
};

struct redis_wire *redis_wire_new(struct event_base *base, const struct redis_wire_options *o);
void redis_wire_free(struct redis_wire *l); /* NULL-safe */
/* False if it cannot be sent now; otherwise `published` tells. */
bool redis_wire_publish(struct redis_wire *l, const char *channel, const void *data, size_t len);
bool redis_wire_connected(const struct redis_wire *l);
size_t redis_wire_waiting(const struct redis_wire *l);    /* messages that are not answered yet */
const char *redis_wire_error(const struct redis_wire *l); /* the last one, or "" */

#endif
