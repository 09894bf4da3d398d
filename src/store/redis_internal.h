/* What the files of the Redis engine share. */
#ifndef SONDE_REDIS_INTERNAL_H
#define SONDE_REDIS_INTERNAL_H

#include <openssl/ssl.h>

#include "store/redis_net.h"

#define REDIS_SLOTS 16384

struct redis_node {
    char host[256];
    unsigned port;
    unsigned replicas;
    int fd; /* -1: not connected */
    SSL *ssl;
    redisReader *reader;
};

struct redis_net {
    struct store_url url;
    SSL_CTX *tls;
    bool clustered;
    VECTOR(struct redis_node *) nodes; /* the first is the one that the URL names */
    uint16_t slot[REDIS_SLOTS];        /* index of the node that has it */
};

int redis_node_connect(struct redis_net *l, struct redis_node *n, struct error *err);
/* One command and its answer, which may be an error of Redis's own. */
int redis_node_ask(struct redis_node *n, const struct redis_command *c, redisReply **out,
                   struct error *err);
void redis_node_close(struct redis_node *n);

struct redis_store {
    struct store store;
    struct redis_net *link;
};

#define REDIS_OF(s) (((struct redis_store *)(s))->link)
#define REDIS_JOBS "sonde:{jobs}"

/* "sonde:{2001}:" and what follows: the braces keep all of a job in one slot. */
void redis_key(struct redis_command *c, uint32_t job, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A key of the job, to find its node by. */
void redis_job_key(uint32_t job, char out[32]);
/* Runs a command of one job's. */
int redis_of_job(struct redis_net *l, uint32_t job, struct redis_command *c, redisReply **out,
                 struct error *err);

int redis_job_get(struct store *s, uint32_t id, struct job *out, struct error *err);
int redis_job_list(struct store *s, store_job_fn *fn, void *context, struct error *err);
int redis_job_remove(struct store *s, uint32_t id, struct error *err);
int redis_counts(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                 struct error *err);
int redis_events(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                 struct error *err);
int redis_curve(struct store *s, uint32_t job, const char *event, store_point_fn *fn, void *context,
                struct error *err);
int redis_bench(struct store *s, uint32_t job, store_bench_fn *fn, void *context,
                struct error *err);
int redis_recordings(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                     struct error *err);
int redis_recording(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                    struct error *err);
int redis_keys(struct store *s, uint32_t job, store_key_fn *fn, void *context, struct error *err);
int redis_retain(struct store *s, const struct store_retention *how, struct store_removed *removed,
                 struct error *err);

#endif
