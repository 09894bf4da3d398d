/* Batches to store, and what a store says it holds. */
#ifndef SONDE_STORE_SAMPLE_H
#define SONDE_STORE_SAMPLE_H

#include "store/store.h"

#define SAMPLE_TIME (1700000000ull * 1000000000) /* a day's noon or so */
#define SAMPLE_DAY (STORE_DAY * 1000000000ull)

/* An empty store at $SONDE_STORE, or of SQLite in a folder of its own: all its jobs are removed. */
struct store *sample_open(void);
struct store *sample_open_again(void); /* a second way into it */
void sample_clean(struct store *s);    /* removes every job */

uint32_t sample_job(struct store *s, uint32_t id, const char *info);
/* A zeroed batch with key, job and time set. */
void sample_batch(struct batch *b, uint32_t job, const char *key, uint64_t time);
/* Adds one; it must succeed. Returns whether it was a duplicate. Releases the batch. */
bool sample_add(struct store *s, struct batch *b);
/* The sum of (event, executable, function), or of (event, …) for NULLs. */
int64_t sample_value(struct store *s, uint32_t job, enum count_kind kind, const char *event,
                     const char *executable, const char *name);
size_t sample_rows(struct store *s, uint32_t job, enum count_kind kind);
int64_t sample_event(struct store *s, uint32_t job, const char *event);

#endif
