/*
 * Connections to Redis: one server, or a cluster by its map of slots. hiredis formats and parses;
 * sockets and TLS are ours, since its version here knows no TLS. Used by one thread.
 */
#ifndef SONDE_REDIS_NET_H
#define SONDE_REDIS_NET_H

#include <hiredis/hiredis.h>

#include "store/store_internal.h"

struct redis_net;

int redis_net_open(const char *url, bool tls, struct redis_net **out, struct error *err);
void redis_net_free(struct redis_net *l);
bool redis_net_clustered(const struct redis_net *l);

/* A command that grows argument by argument. */
struct redis_command {
    struct arena arena; /* of numbers and joined texts */
    VECTOR(const char *) words;
    VECTOR(size_t) lens;
};

void redis_word(struct redis_command *c, const char *text); /* not copied */
void redis_bytes(struct redis_command *c, const void *data, size_t len);
void redis_number(struct redis_command *c, int64_t number);
void redis_format(struct redis_command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void redis_command_clear(struct redis_command *c);
void redis_command_release(struct redis_command *c);

/*
 * Sends it to the node that has `key`, follows MOVED and ASK, connects again where that can help,
 * and clears it. The caller frees *out. Errors of Redis are faults: FAULT_SYSTEM if it is away, is
 * loading, has no master or may not be written to; FAULT_LIMIT if it is out of memory. Only
 * commands that may be run twice are to be sent: an answer may have been lost.
 */
int redis_call(struct redis_net *l, const char *key, struct redis_command *c, redisReply **out,
               struct error *err);

/* A script, by its hash; its text is sent where a node does not know it yet. `c` holds what follows
 * the text: the number of keys, keys and arguments. */
int redis_script(struct redis_net *l, const char *key, const char *script, struct redis_command *c,
                 redisReply **out, struct error *err);
/* Waits until a replica has what was written last, where the node of `key` has any. */
int redis_settle(struct redis_net *l, const char *key, struct error *err);

/* Slot of a key: CRC16 (XMODEM) of what is between { and }, or of all of it. */
unsigned redis_slot(const char *key);

#endif
