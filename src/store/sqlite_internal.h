/* What the files of the SQLite engine share. */
#ifndef SONDE_SQLITE_INTERNAL_H
#define SONDE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "base/map.h"
#include "base/text.h"
#include "store/store_internal.h"

enum sqlite_statement {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVE,
    SQL_RELEASE,
    SQL_UNDO,
    SQL_JOB_PUT,
    SQL_JOB_NEXT,
    SQL_JOB_GET,
    SQL_JOB_LIST,
    SQL_JOB_TOUCH,
    SQL_JOB_REMOVE,
    SQL_KEY_PUT,
    SQL_KEY_LIST,
    SQL_EVENT_PUT,
    SQL_EVENT_GET,
    SQL_NODE_PUT,
    SQL_NODE_GET,
    SQL_NODE_NAME,
    SQL_COUNT_ADD,
    SQL_COUNT_GET,
    SQL_COUNT_AT,
    SQL_COUNT_LIST,
    SQL_SET_GET,
    SQL_SET_PUT,
    SQL_SET_LIST,
    SQL_LARGEST_PUT,
    SQL_LARGEST_AT,
    SQL_LARGEST_LIST,
    SQL_LARGEST_SIZE,
    SQL_LARGEST_FILL,
    SQL_LARGEST_THIN,
    SQL_POINT_ADD,
    SQL_BENCH_PUT,
    SQL_RECORDING_PUT,
    SQL_COUNT_TOP_DAYS,
    SQL_COUNT_ALL,
    SQL_COUNT_BY_DAY,
    SQL_EVENT_SUMS,
    SQL_CURVE,
    SQL_BENCH_LIST,
    SQL_RECORDING_LIST,
    SQL_RECORDING_GET,
    SQL_VERSION,
    SQL_PING,
    SQL_STATEMENTS
};

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statement[SQL_STATEMENTS];
    /* Numbers of names that are known to be in the file, for one transaction after another. */
    struct names names;
    int64_t *node_id; /* by index of `names` */
    size_t node_cap;
    int64_t version; /* of the file, as far as others have changed it */
    struct text scratch;
    int64_t noted; /* by the statement that ran last; SQLITE_NOTHING_NOTED: its row was new */
};

#define SQLITE_NOTHING_NOTED (-1)

#define SQLITE_OF(s) ((struct sqlite_store *)(s))

/* FAULT by what SQLite says, with a sentence. */
int sqlite_fault(struct sqlite_store *s, const char *doing, struct error *err);
/* The prepared statement, reset; NULL with a fault. */
sqlite3_stmt *sqlite_prepare(struct sqlite_store *s, enum sqlite_statement which,
                             struct error *err);
/* 1 for a row, 0 at the end, or a fault. */
int sqlite_step(struct sqlite_store *s, sqlite3_stmt *st, const char *doing, struct error *err);
/* A statement without parameters or rows. */
int sqlite_do(struct sqlite_store *s, enum sqlite_statement which, struct error *err);
extern const char *const sqlite_job_tables[]; /* where its rows are; ends with NULL */
int sqlite_job_get(struct store *s, uint32_t id, struct job *out, struct error *err);

int sqlite_add(struct store *s, struct batch *const *batches, size_t count,
               struct store_outcome *outcomes, struct error *err);

/* sqlite_counts.c: counts of all batches that are neither refused nor there already, within the
 * transaction of the caller. */
int sqlite_add_counts(struct sqlite_store *s, struct batch *const *batches, size_t count,
                      const struct store_outcome *outcomes, struct error *err);
int sqlite_event_number(struct sqlite_store *s, const char *name, int64_t *id, struct error *err);
/* Within a transaction: forgets names if someone else has written meanwhile. */
int sqlite_renew_names(struct sqlite_store *s, struct error *err);
void sqlite_forget_names(struct sqlite_store *s);
/* What a node is found by in the file, where it stands: it stays as it is. 32 bits. */
int64_t sqlite_hash(const char *executable, const char *name);

/* Counts of one event, kind and day; see sqlite_top.c. */
struct sqlite_set {
    int64_t job, kind, event, day;
    int64_t rows;  /* that it has */
    int64_t kept;  /* of them in `largest` */
    int64_t floor; /* what is not in there has at most so much; -1: nothing is in there yet */
    bool changed;
};

/* Around additions to a set: open, note what each row has become, close. */
int sqlite_set_open(struct sqlite_store *s, struct sqlite_set *set, struct error *err);
int sqlite_set_note(struct sqlite_store *s, struct sqlite_set *set, int64_t node, int64_t value,
                    bool fresh, struct error *err);
int sqlite_set_close(struct sqlite_store *s, struct sqlite_set *set, struct error *err);
/* The largest, if they can be told without reading all: *sure says so. */
int sqlite_top(struct sqlite_store *s, const struct store_query *q, int64_t event, bool *sure,
               store_count_fn *fn, void *context, struct error *err);

int sqlite_counts(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                  struct error *err);
int sqlite_events(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                  struct error *err);
int sqlite_curve(struct store *s, uint32_t job, const char *event, store_point_fn *fn,
                 void *context, struct error *err);
int sqlite_bench(struct store *s, uint32_t job, store_bench_fn *fn, void *context,
                 struct error *err);
int sqlite_recordings(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                      struct error *err);
int sqlite_recording(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                     struct error *err);
int sqlite_keys(struct store *s, uint32_t job, store_key_fn *fn, void *context, struct error *err);
int sqlite_retain(struct store *s, const struct store_retention *how, struct store_removed *removed,
                  struct error *err);

#endif
