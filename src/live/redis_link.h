/*
 * A connection to Redis on the loop that comes back by itself: nothing waits for it, and what
 * cannot be sent now is refused, so that a server that is away or slow costs no memory.
 */
#ifndef SONDE_LIVE_REDIS_LINK_H
#define SONDE_LIVE_REDIS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct redis_link;

struct redis_address {
    char host[256], user[128], password[256];
    uint16_t port;
    unsigned database;
};

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]; FAULT_USAGE says what is wrong. */
int redis_address_parse(const char *url, struct redis_address *out, struct error *err);

struct redis_link_options {
    struct redis_address address;
    const char *channel; /* to listen to, or NULL: then it may publish */
    void (*message)(void *context, const char *data, size_t len);
    /* A message has gone to the server, or is lost. */
    void (*published)(void *context, bool sent);
    void *context;
};

struct redis_link *redis_link_new(struct event_base *base, const struct redis_link_options *o);
void redis_link_free(struct redis_link *l); /* NULL-safe */
/* False if it cannot be sent now; otherwise `published` tells. */
bool redis_link_publish(struct redis_link *l, const char *channel, const void *data, size_t len);
bool redis_link_connected(const struct redis_link *l);
size_t redis_link_waiting(const struct redis_link *l);    /* messages that are not answered yet */
const char *redis_link_error(const struct redis_link *l); /* the last one, or "" */

#endif
