/*
 * One push: what a client wants added to a job, as a whole or not at all. Its key makes it count
 * once, however often it is sent. As text it is one line of JSON, followed by the recording's own
 * bytes if there is one; requests, the spool and the journal all hold that text.
 *
 *     {"key": "…", "host": "web1", "counts": [
 *        {"executable": "app", "function": "parse", "events": {"cpu": 120, "cache-misses": 3}}],
 *      "stacks": [{"executable": "app", "stack": "main;run;parse", "events": {"cpu": 120}}],
 *      "bench": [{"name": "app", "run": {…}}], "recording": {"name": "app.sonde", "size": 812}}
 */
#ifndef SONDE_BATCH_H
#define SONDE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"
#include "profile/profile.h"

#define BATCH_KEY_MAX 64
#define BATCH_NAME_MAX 4096      /* bytes of a function or executable */
#define BATCH_STACK_MAX 16384    /* bytes of a stack */
#define BATCH_EVENT_MAX 128      /* bytes of an event's name */
#define BATCH_COUNTS_MAX 250000u /* values of one batch */
#define BATCH_BENCH_MAX 10000u
#define BATCH_BENCH_SIZE 65536             /* bytes of one result */
#define BATCH_VALUE_MAX ((int64_t)1 << 53) /* of one value: what JSON readers keep exact */

enum count_kind {
    COUNT_NODE = 0,  /* of a function of an executable, by itself */
    COUNT_STACK = 1, /* of a whole stack, "root;…;leaf" */
    COUNT_KINDS
};

struct batch_count {
    enum count_kind kind;
    const char *event, *executable, *name;
    int64_t value;
};

struct batch_bench {
    const char *name; /* what was measured */
    const char *json; /* one object, as the client made it */
};

/* So much of an event came in the interval that starts there. */
struct batch_point {
    const char *event;
    uint64_t time; /* s since 1970 */
    int64_t value;
};

struct batch_key {
    const char *key;
    uint64_t time;
};

/* Texts live in the arena; the recording's bytes are the owner's own. */
struct batch {
    struct arena arena;
    const char *key;  /* [A-Za-z0-9._:-]+ */
    const char *host; /* "" if nobody said */
    VECTOR(struct batch_count) counts;
    VECTOR(struct batch_bench) bench;
    const char *recording_name; /* NULL: there is none */
    const void *recording;
    size_t recording_size;
    uint64_t time; /* ns since 1970 on the server's clock; set by who stores it */
    uint32_t job;
    /* Curves of the job: store_add makes them of the counts, unless the batch was moved here from
     * another store. Such a one may also bring the keys of others. */
    VECTOR(struct batch_point) points;
    VECTOR(struct batch_key) keys;
    bool moved;
};

void batch_release(struct batch *b);

/* Is it fit to be a key? */
bool batch_key_valid(const char *key);
/* A new key: 128 random bits. */
void batch_key_make(char key[BATCH_KEY_MAX + 1]);
/* Of a batch that only carries others' counts or keys from another store. */
static inline bool batch_key_moved(const char *key)
{
    return text_starts(key, "moved:");
}

/*
 * Reads such text into a zeroed batch; `data` must outlive it where it holds a recording.
 * FAULT_INPUT with what is wrong where; FAULT_LIMIT for a bound of the above. Release in every
 * case.
 */
int batch_parse(struct batch *b, const char *data, size_t len, struct error *err);
/* The way back, but for the recording's bytes, which follow the text. */
void batch_write(const struct batch *b, struct text *out);

/* Adds a copy of the texts. */
void batch_count(struct batch *b, enum count_kind kind, const char *event, const char *executable,
                 const char *name, int64_t value);
/* Every event of a profile: each function's own values and, if `stacks`, whole stacks. */
void batch_add_profile(struct batch *b, const struct profile *p, bool stacks);

#endif
