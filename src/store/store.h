/*
 * Jobs at rest: one vtable, one file an engine (sqlite.c, redis.c, clickhouse.c). A job is a
 * number from 2001 to 9999 with a description; to it belong counts by function and
 * event, benchmark results and recordings, which batches add.
 *
 * What store_add has returned 0 for is durable as far as the engine promises it, whole, and counted
 * once. A store is used by one thread at a time; open several for several threads, also
 * from several processes and machines where the engine is a server.
 *
 * Faults: FAULT_MISSING no such job or recording; FAULT_USAGE the identifier is taken or out of
 * range; FAULT_LIMIT no room; FAULT_INPUT what is stored is damaged; FAULT_SYSTEM the engine is
 * away, locked or read-only: trying again later may help.
 */
#ifndef SONDE_STORE_H
#define SONDE_STORE_H

#include "store/batch.h"

#define JOB_FIRST 2001u
#define JOB_LAST 9999u
#define JOB_INFO_MAX 1024
#define STORE_DAY 86400ull
#define STORE_MINUTE 60ull

struct store;

struct job {
    uint32_t id;
    char info[JOB_INFO_MAX + 1];
    uint64_t created, updated; /* ns since 1970 */
    uint64_t batches;          /* added so far */
};

struct store_count {
    enum count_kind kind;
    uint32_t day; /* since 1970; 0 where several are summed up */
    const char *event, *executable, *name;
    int64_t value;
};

/* Counts to read. */
struct store_query {
    uint32_t job;
    enum count_kind kind;
    const char *event;         /* NULL: all; needed where `top` is given */
    uint32_t from_day, to_day; /* both inclusive; to_day 0: no bound */
    size_t top;                /* the largest so many, largest first; 0: all, in any order */
    bool by_day;               /* not summed up over days; not with top */
};

struct store_event {
    const char *name;
    int64_t value; /* sum over all functions */
};

struct store_point {
    uint64_t time; /* s since 1970, start of the interval */
    int64_t value;
};

struct store_bench {
    uint64_t time; /* ns */
    const char *key, *host, *name, *json;
};

struct store_recording {
    const char *key; /* of the batch that brought it: its identifier */
    const char *name, *host;
    uint64_t time, size;
};

struct store_retention {
    uint64_t now;       /* ns */
    uint64_t keep;      /* ns: what is older goes; 0: nothing does */
    uint64_t max_bytes; /* of recordings: the oldest go first; 0: no bound */
};

struct store_removed {
    uint64_t jobs, counts, recordings, points;
};

/* Outcome of one batch. */
struct store_outcome {
    int rc;
    bool duplicate; /* it was there already; rc is 0 */
    struct error error;
};

typedef int store_job_fn(void *context, const struct job *job, struct error *err);
typedef int store_count_fn(void *context, const struct store_count *count, struct error *err);
typedef int store_event_fn(void *context, const struct store_event *event, struct error *err);
typedef int store_point_fn(void *context, const struct store_point *point, struct error *err);
typedef int store_bench_fn(void *context, const struct store_bench *bench, struct error *err);
typedef int store_recording_fn(void *context, const struct store_recording *recording,
                               struct error *err);
typedef int store_key_fn(void *context, const char *key, uint64_t time, struct error *err);

/* A callback that returns other than 0 ends the walk, and its result is the walk's. Texts hold
 * during the call only. Asking about a job that is not there is FAULT_MISSING. */
struct store_ops {
    const char *scheme; /* "sqlite:" */
    int (*open)(const char *url, struct store **out, struct error *err);
    void (*close)(struct store *s);
    int (*ping)(struct store *s, struct error *err);

    /* `job` has id (0: the next free one, which is then set), info and created. */
    int (*job_create)(struct store *s, struct job *job, struct error *err);
    int (*job_get)(struct store *s, uint32_t id, struct job *out, struct error *err);
    int (*job_list)(struct store *s, store_job_fn *fn, void *context,
                    struct error *err); /* by id */
    /* With all that belongs to it; the number is free then. */
    int (*job_remove)(struct store *s, uint32_t id, struct error *err);

    /* Each batch for itself as a whole; together for speed. The result is negative if none could
     * be tried. */
    int (*add)(struct store *s, struct batch *const *batches, size_t count,
               struct store_outcome *outcomes, struct error *err);

    int (*counts)(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                  struct error *err);
    /* Events of functions with their sums, by name. */
    int (*events)(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                  struct error *err);
    /* What came when: by minute, older ones by hour and day. */
    int (*curve)(struct store *s, uint32_t job, const char *event, store_point_fn *fn,
                 void *context, struct error *err);
    int (*bench)(struct store *s, uint32_t job, store_bench_fn *fn, void *context,
                 struct error *err); /* oldest first */
    int (*recordings)(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                      struct error *err); /* oldest first */
    /* The caller frees *data. */
    int (*recording)(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                     struct error *err);
    /* Keys of batches that are remembered, for migration. */
    int (*keys)(struct store *s, uint32_t job, store_key_fn *fn, void *context, struct error *err);
    int (*retain)(struct store *s, const struct store_retention *how, struct store_removed *removed,
                  struct error *err);
};

/* Is what is being read still wanted? What is not is given up, as FAULT_USAGE. */
struct store_patience {
    uint64_t until;              /* monotonic ns; 0: for ever */
    bool (*gone)(void *context); /* or NULL: somebody waits for it */
    void *context;
};

/* First member of every engine's own struct. */
struct store {
    const struct store_ops *ops;
    struct store_patience patience; /* of whoever reads; set for one question at a time */
};

/* 0, or FAULT_USAGE: for engines, now and then during long work. */
int store_go_on(const struct store *s, struct error *err);

/* "sqlite:PATH", "redis://[:PASSWORD@]HOST[:PORT]" (rediss: with TLS; a cluster is noticed),
 * "clickhouse://[USER:PASSWORD@]HOST[:PORT][/DATABASE]" (clickhouses: with TLS). */
int store_open(const char *url, struct store **out, struct error *err);
void store_close(struct store *s); /* NULL is fine */
/* The URL without passwords, for people. */
void store_url_safe(const char *url, struct text *out);

/* The calls below check what they are given and hand it to the engine. */
int store_job_create(struct store *s, struct job *job, struct error *err);
int store_add(struct store *s, struct batch *const *batches, size_t count,
              struct store_outcome *outcomes, struct error *err);
int store_counts(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                 struct error *err);

/* Everything of one store into another that has none of these jobs. What a migration that was cut
 * short had brought over is found and not brought again; jobs that one had finished are left as
 * they are. */
struct store_migration {
    uint64_t jobs, counts, bench, recordings;
    uint64_t there; /* jobs that were moved before */
};
int store_migrate(struct store *from, struct store *to, struct store_migration *done,
                  struct error *err);

static inline uint32_t store_day(uint64_t ns)
{
    return (uint32_t)(ns / 1000000000 / STORE_DAY);
}

/* How coarse a point of that age becomes: a minute for a day, an hour for a month, then a day. */
uint64_t store_point_width(uint64_t age);

#endif
