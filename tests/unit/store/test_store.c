/*
 * What every engine must keep: jobs by number, counts that add up once, results, recordings,
 * curves, what is let go, and the way into another store.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "store_sample.h"

static struct store *store;
static struct error err;

static int open_store(void **state)
{
    (void)state;
    store = sample_open();
    err = (struct error){0};
    return 0;
}

static int close_store(void **state)
{
    (void)state;
    store_close(store);
    return 0;
}

static void test_numbers(void **state)
{
    (void)state;
    struct job job = {.id = 2000};
    assert_int_equal(store_job_create(store, &job, &err), FAULT_USAGE);
    job.id = 10000;
    assert_int_equal(store_job_create(store, &job, &err), FAULT_USAGE);
    assert_int_equal(sample_job(store, 2005, "by hand"), 2005);
    job.id = 2005;
    assert_int_equal(store_job_create(store, &job, &err), FAULT_USAGE);
    assert_non_null(strstr(err.text, "2005"));
    assert_int_equal(sample_job(store, 0, "next"), 2006);
    assert_int_equal(sample_job(store, 9999, "last"), 9999);
    assert_int_equal(sample_job(store, 0, "the first that is free"), 2001);
    assert_int_equal(sample_job(store, 0, "and on"), 2002);
}

static int note_jobs(void *context, const struct job *job, struct error *e)
{
    (void)e;
    struct text *out = context;
    text_format(out, "%u %s;", job->id, job->info);
    return 0;
}

static void test_list_and_remove(void **state)
{
    (void)state;
    struct text seen = TEXT_INIT;
    const char *odd = "a 'quoted' \\ \"job\"\t→ ü\n;";
    sample_job(store, 2002, odd);
    sample_job(store, 2001, "first");
    assert_int_equal(store->ops->job_list(store, note_jobs, &seen, &err), 0);
    struct text wanted = TEXT_INIT;
    text_format(&wanted, "2001 first;2002 %s;", odd);
    assert_string_equal(seen.data, wanted.data);
    struct job job;
    assert_int_equal(store->ops->job_get(store, 2002, &job, &err), 0);
    assert_string_equal(job.info, odd);
    assert_true(job.created == SAMPLE_TIME);
    assert_int_equal(store->ops->job_remove(store, 2001, &err), 0);
    assert_int_equal(store->ops->job_remove(store, 2001, &err), FAULT_MISSING);
    assert_int_equal(store->ops->job_get(store, 2001, &job, &err), FAULT_MISSING);
    text_release(&seen);
    text_release(&wanted);
}

static void test_counts_add_up(void **state)
{
    (void)state;
    struct batch b;
    uint32_t job = sample_job(store, 2001, "sums");
    sample_batch(&b, job, "one", SAMPLE_TIME);
    batch_count(&b, COUNT_NODE, "cache-misses", "app", "parse", 10);
    batch_count(&b, COUNT_NODE, "cpu", "app", "parse", 1ll << 40);
    batch_count(&b, COUNT_NODE, "cpu", "app", "std::vector<int, 'a'>::\\at\n(…)", 5);
    batch_count(&b, COUNT_STACK, "cpu", "app", "main;parse", 5);
    assert_false(sample_add(store, &b));
    sample_batch(&b, job, "two", SAMPLE_TIME + SAMPLE_DAY);
    batch_count(&b, COUNT_NODE, "cache-misses", "app", "parse", 7);
    batch_count(&b, COUNT_NODE, "cache-misses", "other", "parse", 100);
    batch_count(&b, COUNT_NODE, "iTLB-loads", "app", "parse", 1); /* a new column */
    assert_false(sample_add(store, &b));
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cache-misses", "app", "parse"), 17);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cache-misses", NULL, "parse"), 117);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "iTLB-loads", "app", "parse"), 1);
    assert_true(sample_value(store, job, COUNT_NODE, "cpu", "app", "parse") == 1ll << 40);
    assert_int_equal(
        sample_value(store, job, COUNT_NODE, "cpu", "app", "std::vector<int, 'a'>::\\at\n(…)"), 5);
    assert_int_equal(sample_value(store, job, COUNT_STACK, "cpu", "app", "main;parse"), 5);
    assert_int_equal(sample_rows(store, job, COUNT_NODE), 5);
    assert_int_equal(sample_event(store, job, "cache-misses"), 117);
    struct job read;
    assert_int_equal(store->ops->job_get(store, job, &read, &err), 0);
    assert_int_equal(read.batches, 2);
    assert_true(read.updated == SAMPLE_TIME + SAMPLE_DAY);
}

static void test_key_counts_once(void **state)
{
    (void)state;
    struct batch b;
    uint32_t job = sample_job(store, 2001, "once"), other = sample_job(store, 2002, "other");
    for (int i = 0; i < 5; i++) {
        sample_batch(&b, job, "same", SAMPLE_TIME + (uint64_t)i * SAMPLE_DAY);
        batch_count(&b, COUNT_NODE, "cpu", "app", "f", 10);
        *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":1}"};
        assert_int_equal(sample_add(store, &b), i > 0);
    }
    sample_batch(&b, other, "same", SAMPLE_TIME); /* a key is a job's own */
    batch_count(&b, COUNT_NODE, "cpu", "app", "f", 3);
    assert_false(sample_add(store, &b));
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "f"), 10);
    assert_int_equal(sample_value(store, other, COUNT_NODE, "cpu", "app", "f"), 3);
    assert_int_equal(sample_event(store, job, "cpu"), 10);
}

static void test_missing_job_takes_nothing(void **state)
{
    (void)state;
    struct batch good, bad, *both[] = {&bad, &good};
    struct store_outcome outcomes[2];
    uint32_t job = sample_job(store, 2001, "there");
    sample_batch(&bad, 2999, "k", SAMPLE_TIME);
    batch_count(&bad, COUNT_NODE, "cpu", "app", "f", 1);
    sample_batch(&good, job, "k", SAMPLE_TIME);
    batch_count(&good, COUNT_NODE, "cpu", "app", "f", 2);
    assert_int_equal(store_add(store, both, 2, outcomes, &err), 0);
    assert_int_equal(outcomes[0].rc, FAULT_MISSING);
    assert_int_equal(outcomes[1].rc, 0);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "f"), 2);
    struct store_query q = {.job = 2999};
    assert_int_equal(store_counts(store, &q, NULL, NULL, &err), FAULT_MISSING);
    batch_release(&good);
    batch_release(&bad);
}

/* Batches that are added together: each counts for itself, where functions, days and keys meet. */
static void test_together(void **state)
{
    (void)state;
    enum { BATCHES = 6 };
    static const char *const keys[BATCHES] = {"a", "b", "a", "c", "d", "e"};
    struct batch batches[BATCHES], *list[BATCHES];
    struct store_outcome outcomes[BATCHES];
    uint32_t job = sample_job(store, 2001, "one"), other = sample_job(store, 2002, "other");
    for (size_t i = 0; i < BATCHES; i++) {
        list[i] = &batches[i];
        sample_batch(list[i], i == 4 ? other : job, keys[i], SAMPLE_TIME + (i == 3) * SAMPLE_DAY);
        batch_count(list[i], COUNT_NODE, "cpu", "app", "same", 1ll << (4 * i));
        batch_count(list[i], COUNT_NODE, i % 2 ? "faults" : "cpu", "app", keys[i], 7);
        batch_count(list[i], COUNT_STACK, "cpu", "app", "same", 3);
        batch_count(list[i], COUNT_NODE, "cpu", "ap", "p/same", 5);
    }
    batches[5].job = 2999; /* there is none */
    assert_int_equal(store_add(store, list, BATCHES, outcomes, &err), 0);
    for (size_t i = 0; i < BATCHES; i++) {
        assert_int_equal(outcomes[i].rc, i == 5 ? FAULT_MISSING : 0);
        assert_int_equal(outcomes[i].duplicate, i == 2);
        batch_release(list[i]);
    }
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "same"), 0x1011);
    assert_int_equal(sample_value(store, other, COUNT_NODE, "cpu", "app", "same"), 0x10000);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "a"), 7);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "faults", "app", "b"), 7);
    assert_int_equal(sample_value(store, job, COUNT_STACK, "cpu", "app", "same"), 9);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "ap", "p/same"), 15);
    assert_int_equal(sample_rows(store, job, COUNT_NODE), 5);
    assert_int_equal(sample_event(store, job, "faults"), 14);
}

/* A number that is given again starts from nothing, keys too. */
static void test_removed_is_forgotten(void **state)
{
    (void)state;
    struct batch b;
    for (int i = 0; i < 3; i++) {
        uint32_t job = sample_job(store, 2001, "again");
        assert_int_equal(sample_rows(store, job, COUNT_NODE), 0);
        sample_batch(&b, job, "k", SAMPLE_TIME);
        batch_count(&b, COUNT_NODE, "cpu", "app", "f", 10 + i);
        assert_false(sample_add(store, &b));
        assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "f"), 10 + i);
        assert_int_equal(store->ops->job_remove(store, job, &err), 0);
    }
}

struct ranking {
    char names[64][32];
    int64_t values[64];
    size_t len;
};

static int rank(void *context, const struct store_count *c, struct error *e)
{
    struct ranking *r = context;
    (void)e;
    assert_in_range(r->len, 0, 63);
    snprintf(r->names[r->len], 32, "%s", c->name);
    r->values[r->len++] = c->value;
    return 0;
}

/* Each function is small on each day, and the largest only over all of them. */
static void test_top(void **state)
{
    (void)state;
    struct batch b;
    uint32_t job = sample_job(store, 2001, "top");
    char name[32], key[32];
    for (uint32_t day = 0; day < 3; day++) {
        snprintf(key, sizeof key, "day%u", day);
        sample_batch(&b, job, key, SAMPLE_TIME + day * SAMPLE_DAY);
        for (int i = 0; i < 6000; i++) {
            snprintf(name, sizeof name, "f%d", i);
            int64_t value = i % 3 == (int)day ? 100000 + i : 10;
            batch_count(&b, COUNT_NODE, "cpu", "app", name, i == 17 ? 60000 : value);
        }
        sample_add(store, &b);
    }
    struct ranking r = {0};
    struct store_query q = {.job = job, .event = "cpu", .top = 3};
    assert_int_equal(store_counts(store, &q, rank, &r, &err), 0);
    assert_int_equal(r.len, 3);
    assert_string_equal(r.names[0], "f17");
    assert_int_equal(r.values[0], 180000);
    assert_string_equal(r.names[1], "f5999");
    assert_int_equal(r.values[1], 100000 + 5999 + 20);
    assert_string_equal(r.names[2], "f5998");
    r.len = 0;
    q.from_day = q.to_day = store_day(SAMPLE_TIME) + 1;
    assert_int_equal(store_counts(store, &q, rank, &r, &err), 0);
    assert_string_equal(r.names[0], "f5998");
    assert_int_equal(r.values[0], 100000 + 5998);
    q.event = "nothing";
    r.len = 0;
    assert_int_equal(store_counts(store, &q, rank, &r, &err), 0);
    assert_int_equal(r.len, 0);
}

#define MANY 24000
#define LARGEST 40

static int64_t truth[2][MANY]; /* by day */

static int downwards(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* Over both days, or in one of them. */
static int64_t true_value(int day, int function)
{
    return (day == 1 ? 0 : truth[0][function]) + (day == 0 ? 0 : truth[1][function]);
}

static void check_largest(uint32_t job, int day)
{
    static int64_t sorted[MANY];
    struct ranking r = {0};
    struct store_query q = {.job = job, .event = "cpu", .top = LARGEST};
    if (day >= 0)
        q.from_day = q.to_day = store_day(SAMPLE_TIME) + (uint32_t)day;
    assert_int_equal(store_counts(store, &q, rank, &r, &err), 0);
    for (int i = 0; i < MANY; i++)
        sorted[i] = true_value(day, i);
    qsort(sorted, MANY, sizeof *sorted, downwards);
    for (size_t i = 0; i < LARGEST && sorted[i]; i++) {
        assert_in_range(i, 0, r.len - 1);
        assert_int_equal(r.values[i], sorted[i]);
        assert_int_equal(r.values[i], true_value(day, (int)strtol(r.names[i] + 1, NULL, 10)));
    }
}

/* Far more functions than are kept apart as the largest, and ranks that change as they grow. */
static void test_top_of_many(void **state)
{
    (void)state;
    uint32_t job = sample_job(store, 2001, "many"), random = 1;
    memset(truth, 0, sizeof truth);
    for (int round = 0; round < 7; round++) {
        struct batch b;
        char name[32];
        int day = round % 2;
        snprintf(name, sizeof name, "round%d", round);
        sample_batch(&b, job, name, SAMPLE_TIME + (uint64_t)day * SAMPLE_DAY);
        for (int i = 0; i < MANY; i += round < 2 ? 1 : 1 + (int)(random >> 28)) {
            random = random * 1664525 + 1013904223;
            int64_t value = round < 2 ? 1 + (random >> 20) : (random >> 16);
            snprintf(name, sizeof name, "f%d", i);
            batch_count(&b, COUNT_NODE, "cpu", "app", name, value);
            truth[day][i] += value;
        }
        sample_add(store, &b);
        for (int which = -1; which < 2; which++)
            check_largest(job, which);
    }
}

static int note_bench(void *context, const struct store_bench *b, struct error *e)
{
    (void)e;
    text_format(context, "%s %s %s %s;", b->key, b->host, b->name, b->json);
    return 0;
}

static int note_recording(void *context, const struct store_recording *r, struct error *e)
{
    (void)e;
    text_format(context, "%s %s %s %llu;", r->key, r->host, r->name, (unsigned long long)r->size);
    return 0;
}

static void test_results_and_recordings(void **state)
{
    (void)state;
    struct batch b;
    char blob[3000];
    uint32_t job = sample_job(store, 2001, "results");
    for (size_t i = 0; i < sizeof blob; i++)
        blob[i] = (char)(i * 7);
    sample_batch(&b, job, "b1", SAMPLE_TIME);
    *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":1.5,\"say\":\"\\\"\\n\"}"};
    *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":1.25}"};
    sample_add(store, &b);
    sample_batch(&b, job, "b2", SAMPLE_TIME + 1000000000);
    *vector_push(&b.bench) = (struct batch_bench){"other", "{}"};
    b.recording_name = "app.sonde";
    b.recording = blob;
    b.recording_size = sizeof blob;
    sample_add(store, &b);
    struct text seen = TEXT_INIT;
    assert_int_equal(store->ops->bench(store, job, note_bench, &seen, &err), 0);
    assert_string_equal(seen.data, "b1 here app {\"real\":1.5,\"say\":\"\\\"\\n\"};"
                                   "b1 here app {\"real\":1.25};b2 here other {};");
    text_clear(&seen);
    assert_int_equal(store->ops->recordings(store, job, note_recording, &seen, &err), 0);
    assert_string_equal(seen.data, "b2 here app.sonde 3000;");
    text_release(&seen);
    void *data = NULL;
    size_t size;
    assert_int_equal(store->ops->recording(store, job, "b2", &data, &size, &err), 0);
    assert_int_equal(size, sizeof blob);
    assert_memory_equal(data, blob, size);
    free(data);
    assert_int_equal(store->ops->recording(store, job, "b1", &data, &size, &err), FAULT_MISSING);
}

static int note_point(void *context, const struct store_point *p, struct error *e)
{
    (void)e;
    text_format(context, "%lld:%lld;", (long long)p->time - (long long)(SAMPLE_TIME / 1000000000),
                (long long)p->value);
    return 0;
}

static void add_at(uint32_t job, const char *key, uint64_t seconds, int64_t value)
{
    struct batch b;
    sample_batch(&b, job, key, SAMPLE_TIME + seconds * 1000000000);
    batch_count(&b, COUNT_NODE, "cpu", "app", "f", value);
    sample_add(store, &b);
}

/* SAMPLE_TIME is 20 s into a minute and 22:13:20 of its day. */
static void test_curve(void **state)
{
    (void)state;
    uint32_t job = sample_job(store, 2001, "curve");
    add_at(job, "a", 0, 1);
    add_at(job, "b", 10, 2);
    add_at(job, "c", 60, 4);
    struct text seen = TEXT_INIT;
    assert_int_equal(store->ops->curve(store, job, "cpu", note_point, &seen, &err), 0);
    assert_string_equal(seen.data, "-20:3;40:4;");
    text_release(&seen);
}

static void test_retention(void **state)
{
    (void)state;
    struct batch b;
    uint32_t old = sample_job(store, 2001, "old"), lasting = sample_job(store, 2002, "lasting");
    add_at(old, "a", 0, 1);
    add_at(lasting, "a", 0, 1);
    sample_batch(&b, lasting, "r", SAMPLE_TIME);
    b.recording_name = "old.sonde";
    b.recording = "12345678";
    b.recording_size = 8;
    sample_add(store, &b);
    add_at(lasting, "b", 40 * 86400, 2);
    add_at(lasting, "c", 40 * 86400 + 120, 4);
    struct store_retention how = {.now = SAMPLE_TIME + 45 * SAMPLE_DAY, .keep = 30 * SAMPLE_DAY};
    struct store_removed removed = {0};
    if (store->ops->retain(store, &how, &removed, &err))
        fail_msg("%s", err.text);
    struct job job;
    assert_int_equal(store->ops->job_get(store, old, &job, &err), FAULT_MISSING);
    assert_int_equal(removed.jobs, 1);
    assert_int_equal(removed.recordings, 1);
    assert_int_equal(sample_value(store, lasting, COUNT_NODE, "cpu", "app", "f"), 6);
    struct text seen = TEXT_INIT;
    assert_int_equal(store->ops->recordings(store, lasting, note_recording, &seen, &err), 0);
    assert_string_equal(seen.data, "");
    /* Five days old: by the hour; the hour began 800 s before. */
    assert_int_equal(store->ops->curve(store, lasting, "cpu", note_point, &seen, &err), 0);
    struct text wanted = TEXT_INIT;
    text_format(&wanted, "%d:6;", 40 * 86400 - 800);
    assert_string_equal(seen.data, wanted.data);
    text_release(&seen);
    text_release(&wanted);
}

/* A job that was let go early on the day of the cut leaves nothing to the next one of its number,
 * and what others remember of its functions does no harm. */
static void test_retention_leaves_nothing(void **state)
{
    (void)state;
    struct store *second = sample_open_again();
    uint32_t job = sample_job(store, 2001, "idle");
    add_at(job, "a", 0, 1);
    struct store_retention how = {.now = SAMPLE_TIME + 30 * SAMPLE_DAY + SAMPLE_DAY / 24,
                                  .keep = 30 * SAMPLE_DAY};
    struct store_removed removed = {0};
    assert_int_equal(second->ops->retain(second, &how, &removed, &err), 0);
    assert_int_equal(removed.jobs, 1);
    store_close(second);
    job = sample_job(store, 2001, "the next one");
    assert_int_equal(sample_rows(store, job, COUNT_NODE), 0);
    assert_int_equal(sample_event(store, job, "cpu"), -1); /* none of that name */
    add_at(job, "a", 60, 4);
    assert_int_equal(sample_value(store, job, COUNT_NODE, "cpu", "app", "f"), 4);
    assert_int_equal(sample_event(store, job, "cpu"), 4);
}

static void test_retention_by_size(void **state)
{
    (void)state;
    struct batch b;
    uint32_t job = sample_job(store, 2001, "sizes");
    static char blob[1000];
    for (int i = 0; i < 5; i++) {
        char key[8] = {'r', (char)('0' + i), 0};
        sample_batch(&b, job, key, SAMPLE_TIME + (uint64_t)i * 1000000000);
        b.recording_name = "r.sonde";
        b.recording = blob;
        b.recording_size = sizeof blob;
        sample_add(store, &b);
    }
    struct store_retention how = {.now = SAMPLE_TIME + SAMPLE_DAY, .max_bytes = 2500};
    struct store_removed removed = {0};
    assert_int_equal(store->ops->retain(store, &how, &removed, &err), 0);
    struct text seen = TEXT_INIT;
    assert_int_equal(store->ops->recordings(store, job, note_recording, &seen, &err), 0);
    assert_string_equal(seen.data, "r3 here r.sonde 1000;r4 here r.sonde 1000;");
    assert_int_equal(removed.recordings, 3);
    text_release(&seen);
}

#define CLIENTS 4
#define PUSHES 25

static void *push_many(void *argument)
{
    long client = (long)argument;
    struct store *own = sample_open_again();
    for (int i = 0; i < PUSHES; i++) {
        for (int attempt = 0; attempt < 2; attempt++) {
            struct batch b;
            char key[32];
            /* Every second key is that of another client as well. */
            snprintf(key, sizeof key, i % 2 ? "all-%d" : "%2$ld-%1$d", i, client);
            sample_batch(&b, 2001, key, SAMPLE_TIME);
            batch_count(&b, COUNT_NODE, "cpu", "app", "hot", 1);
            batch_count(&b, COUNT_NODE, "cpu", "app", key, 1);
            sample_add(own, &b);
        }
    }
    store_close(own);
    return NULL;
}

/* Many at once, each push sent twice: nothing lost, nothing counted twice. */
static void test_many_at_once(void **state)
{
    (void)state;
    pthread_t threads[CLIENTS];
    sample_job(store, 2001, "many");
    for (long i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_many, (void *)i), 0);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    int64_t wanted = CLIENTS * (PUSHES + 1) / 2 + PUSHES / 2;
    assert_int_equal(sample_value(store, 2001, COUNT_NODE, "cpu", "app", "hot"), wanted);
    assert_int_equal(sample_rows(store, 2001, COUNT_NODE), wanted + 1);
}

static void *create_many(void *argument)
{
    struct store *own = sample_open_again();
    int *made = argument;
    for (uint32_t i = 0; i < 20; i++) {
        struct job job = {.id = 3000 + i};
        *made += store_job_create(own, &job, &(struct error){0}) == 0;
    }
    store_close(own);
    return NULL;
}

static void test_one_creator_wins(void **state)
{
    (void)state;
    pthread_t threads[CLIENTS];
    int made[CLIENTS] = {0}, all = 0;
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, create_many, &made[i]), 0);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        all += made[i];
    }
    assert_int_equal(all, 20);
}

static void fill_for_migration(void)
{
    struct batch b;
    uint32_t job = sample_job(store, 2007, "to be moved");
    add_at(job, "a", 0, 1);
    add_at(job, "b", 86400, 2);
    sample_batch(&b, job, "mixed", SAMPLE_TIME + 5);
    *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":2}"};
    b.recording_name = "app.sonde";
    b.recording = "bytes";
    b.recording_size = 5;
    sample_add(store, &b);
    sample_batch(&b, job, "bench", SAMPLE_TIME + 6);
    *vector_push(&b.bench) = (struct batch_bench){"app", "{\"real\":3}"};
    sample_add(store, &b);
    sample_job(store, 2009, "empty");
}

static void check_moved(struct store *s)
{
    struct job job;
    struct batch b;
    struct text seen = TEXT_INIT;
    assert_int_equal(s->ops->job_get(s, 2007, &job, &err), 0);
    assert_string_equal(job.info, "to be moved");
    assert_int_equal(job.batches, 4);
    assert_int_equal(s->ops->job_get(s, 2009, &job, &err), 0);
    assert_int_equal(sample_value(s, 2007, COUNT_NODE, "cpu", "app", "f"), 3);
    assert_int_equal(s->ops->bench(s, 2007, note_bench, &seen, &err), 0);
    assert_string_equal(seen.data, "mixed here app {\"real\":2};bench here app {\"real\":3};");
    text_clear(&seen);
    assert_int_equal(s->ops->recordings(s, 2007, note_recording, &seen, &err), 0);
    assert_string_equal(seen.data, "mixed here app.sonde 5;");
    text_clear(&seen);
    assert_int_equal(s->ops->curve(s, 2007, "cpu", note_point, &seen, &err), 0);
    assert_string_equal(seen.data, "-20:1;86380:2;");
    text_release(&seen);
    sample_batch(&b, 2007, "a", SAMPLE_TIME); /* what was pushed before is known after */
    batch_count(&b, COUNT_NODE, "cpu", "app", "f", 100);
    assert_true(sample_add(s, &b));
}

/* Into SQLite and back, twice each: the second time nothing may be added. */
static void test_migration(void **state)
{
    (void)state;
    char folder[] = "/tmp/sonde-test-XXXXXX";
    struct text url = TEXT_INIT;
    struct store *other;
    struct store_migration done = {0};
    text_format(&url, "sqlite:%s/other.db", mkdtemp(folder));
    assert_int_equal(store_open(url.data, &other, &err), 0);
    fill_for_migration();
    for (int i = 0; i < 2; i++)
        if (store_migrate(store, other, &done, &err))
            fail_msg("%s", err.text);
    assert_int_equal(done.jobs, 2);
    assert_int_equal(done.there, 2);
    check_moved(other);
    /* Back, or into itself: these jobs are its own. */
    assert_int_equal(store_migrate(other, store, &done, &err), FAULT_USAGE);
    assert_int_equal(store_migrate(store, store, &done, &err), FAULT_USAGE);
    check_moved(store);
    sample_clean(store);
    for (int i = 0; i < 2; i++)
        if (store_migrate(other, store, &done, &err))
            fail_msg("%s", err.text);
    check_moved(store);
    store_close(other);
    text_release(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_list_and_remove, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_counts_add_up, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_key_counts_once, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_missing_job_takes_nothing, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_together, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_removed_is_forgotten, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_top, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_top_of_many, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_results_and_recordings, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_curve, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_retention, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_retention_leaves_nothing, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_retention_by_size, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_many_at_once, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_one_creator_wins, open_store, close_store),
        cmocka_unit_test_setup_teardown(test_migration, open_store, close_store),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
