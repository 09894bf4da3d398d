/* The engines, and what they share. */
#ifndef SONDE_STORE_INTERNAL_H
#define SONDE_STORE_INTERNAL_H

#include "store/store.h"

extern const struct store_ops store_sqlite;
extern const struct store_ops store_redis, store_rediss;
extern const struct store_ops store_clickhouse, store_clickhouses;

/* "scheme://[user[:password]@]host[:port][/path][?query]" taken apart; texts are unescaped. */
struct store_url {
    struct arena arena;
    const char *user, *password, *host, *path; /* "" where there is none; path without its / */
    const char *cluster;                       /* ?cluster=NAME, or "" */
    const char *ca;                            /* ?ca=FILE, or "" */
    unsigned port;
};

int store_url_parse(const char *url, unsigned port, struct store_url *out, struct error *err);
void store_url_release(struct store_url *u);

/* Start of the interval that a point of `time` belongs to now; both in s. */
uint64_t store_point_start(uint64_t time, uint64_t now);

/* The number after the largest that is taken, or the first gap; for engines that do not find it by
 * themselves. Somebody else may take it meanwhile. */
int store_next_free(struct store *s, uint32_t *id, struct error *err);

/* Has nothing come to it since `cut` (ns), as far as is known now? Another server may have added to
 * it after it was listed. False if it is gone. */
bool store_job_idle(struct store *s, uint32_t id, uint64_t cut);

#endif
