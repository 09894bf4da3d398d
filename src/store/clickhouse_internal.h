/* What the files of the ClickHouse engine share. */
#ifndef SONDE_CLICKHOUSE_INTERNAL_H
#define SONDE_CLICKHOUSE_INTERNAL_H

#include <curl/curl.h>

#include "store/row_binary.h"
#include "store/store_internal.h"

enum clickhouse_kind {
    KIND_NODE = 0,
    KIND_STACK,
    KIND_POINT,
    KIND_BENCH,
    KIND_RECORDING,
    KIND_KEY
};

struct clickhouse {
    struct store store;
    struct store_url url;
    bool tls;
    char *database;
    char **hosts;             /* "host:port"; the first answers, all hold rows; ended by NULL */
    const char *parts, *sums; /* the tables to read: local ones, or those over all shards */
    CURL *curl;
    struct curl_slist *headers;
};

#define CLICKHOUSE_OF(s) ((struct clickhouse *)(s))

/* Runs a statement on the first host, or on `host`. */
int clickhouse_run(struct clickhouse *c, const char *host, const char *sql, struct text *answer,
                   struct error *err);
int clickhouse_format(struct clickhouse *c, struct text *answer, struct error *err,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What a row is given; the engine adds `node`. */
#define CLICKHOUSE_COLUMNS                                                                         \
    "day, job, uid, kind, event, executable, name, batch, insertion, time, host, value, data"
/* Rows in RowBinary into a table. */
int clickhouse_insert(struct clickhouse *c, const char *table, const struct text *rows,
                      struct error *err);
/* The code of ClickHouse's that a fault of the above was for, or 0. */
int clickhouse_code(const struct error *err);
/* Text as a literal that no content can leave. */
void clickhouse_quote(struct text *sql, const char *text);

/* A question whose answer is rows. Finish with its result in every case, which releases both. */
int clickhouse_ask(struct clickhouse *c, const char *sql, struct text *answer, struct row_reader *r,
                   struct error *err);
int clickhouse_finish(struct row_reader *r, struct text *answer, int rc, struct error *err);

/* A job, and which of those that ever had its number it is. */
int clickhouse_job(struct clickhouse *c, uint32_t id, struct job *out, uint64_t *uid,
                   struct error *err);
/*
 * FROM (…) over both tables: rows of one job and kind that count, with `columns`, which may be any
 * of day, event, executable, name, batch, time, host, value, data. Rows of a batch that was
 * inserted twice are there once.
 */
void clickhouse_from(struct text *sql, const struct clickhouse *c, uint64_t uid,
                     enum clickhouse_kind kind, const char *columns, const char *where);

int clickhouse_job_get(struct store *s, uint32_t id, struct job *out, struct error *err);
int clickhouse_job_list(struct store *s, store_job_fn *fn, void *context, struct error *err);
int clickhouse_job_remove(struct store *s, uint32_t id, struct error *err);
int clickhouse_counts(struct store *s, const struct store_query *q, store_count_fn *fn,
                      void *context, struct error *err);
int clickhouse_events(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                      struct error *err);
int clickhouse_curve(struct store *s, uint32_t job, const char *event, store_point_fn *fn,
                     void *context, struct error *err);
int clickhouse_bench(struct store *s, uint32_t job, store_bench_fn *fn, void *context,
                     struct error *err);
int clickhouse_recordings(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                          struct error *err);
int clickhouse_recording(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                         struct error *err);
int clickhouse_keys(struct store *s, uint32_t job, store_key_fn *fn, void *context,
                    struct error *err);
int clickhouse_retain(struct store *s, const struct store_retention *how,
                      struct store_removed *removed, struct error *err);

#endif
