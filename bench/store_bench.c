/*
 * How fast a store of jobs is: `store_bench URL [ROWS]` adds batches of counts to new and to known
 * functions, then asks for the 50 largest of a job with ROWS (1,000,000) rows. With a Redis URL, a
 * client that pipelines bare HINCRBY into the same server is measured beside it.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/store.h"

#define BATCH 5000u
#define PIPELINE 1000

static double seconds(uint64_t since)
{
    return (double)(clock_now() - since) / 1e9;
}

static void check(int rc, const struct error *err)
{
    if (rc) {
        fprintf(stderr, "store_bench: %s\n", err->text);
        exit(1);
    }
}

static void name_of(char name[64], unsigned number)
{
    snprintf(name, 64, "namespace::function_%u", number * 2654435761u);
}

/* Counts of `rows` functions from `first` on, in batches, eight to a commit. */
static double ingest(struct store *s, const char *run, unsigned first, unsigned rows)
{
    struct error err = {0};
    uint64_t start = clock_now();
    for (unsigned at = 0; at < rows;) {
        struct batch batches[8] = {0}, *list[8];
        struct store_outcome outcomes[8];
        size_t count = 0;
        for (; count < 8 && at < rows; count++) {
            struct batch *b = &batches[count];
            char key[64], name[64];
            snprintf(key, sizeof key, "%s-%u", run, at);
            *b = (struct batch){.job = 2001, .time = clock_wall(), .host = "here"};
            b->key = arena_strdup(&b->arena, key);
            for (unsigned i = 0; i < BATCH && at < rows; i++, at++) {
                name_of(name, first + at);
                batch_count(b, COUNT_NODE, "cpu", "app", name, 1 + name[22] * 1000 + at % 997);
            }
            list[count] = b;
        }
        check(store_add(s, list, count, outcomes, &err), &err);
        for (size_t i = 0; i < count; i++) {
            check(outcomes[i].rc, &outcomes[i].error);
            batch_release(&batches[i]);
        }
    }
    return rows / seconds(start);
}

/* Own CPU time says what a quiet machine would give where the store is in this process. */
static double measure(struct store *s, const char *what, const char *run, unsigned rows)
{
    uint64_t used = clock_own_cpu();
    double rate = ingest(s, run, 0, rows);
    double own = (double)(clock_own_cpu() - used) / 1e9;
    printf("  %-44s %10.0f /s (%.0f a second of own CPU)\n", what, rate, rows / own);
    return rate;
}

/* A goal beside what was measured. */
static bool missed;
static void goal(const char *what, double measured, double least)
{
    missed |= measured < least;
    printf("  %-44s %10.0f %%%s\n", what, 100 * measured / least,
           measured < least ? "  MISSED" : "");
}

static double raw_redis(const char *url, unsigned rows, bool last)
{
    const char *host = strstr(url, "://") + 3, *colon = strrchr(host, ':');
    redisContext *c = redisConnect("127.0.0.1", colon ? (int)strtol(colon + 1, NULL, 10) : 6379);
    char name[64];
    uint64_t start = clock_now();
    if (!c || c->err)
        return 0;
    for (unsigned at = 0; at < rows; at += PIPELINE) {
        for (unsigned i = 0; i < PIPELINE; i++) {
            name_of(name, at + i);
            redisAppendCommand(c, "HINCRBY raw %s %d", name, 7);
        }
        for (unsigned i = 0; i < PIPELINE; i++) {
            void *reply;
            if (redisGetReply(c, &reply) != REDIS_OK)
                return 0;
            freeReplyObject(reply);
        }
    }
    double rate = rows / seconds(start);
    if (last)
        freeReplyObject(redisCommand(c, "UNLINK raw"));
    redisFree(c);
    return rate;
}

static int note(void *context, const struct store_count *c, struct error *err)
{
    (void)c;
    (void)err;
    ++*(unsigned *)context;
    return 0;
}

static void largest(struct store *s)
{
    struct store_query q = {.job = 2001, .event = "cpu", .top = 50};
    struct error err = {0};
    double best = 1e9, cpu = 1e9;
    for (int i = 0; i < 5; i++) {
        unsigned rows = 0;
        uint64_t start = clock_now(), used = clock_own_cpu();
        check(store_counts(s, &q, note, &rows, &err), &err);
        double took = seconds(start), own = (double)(clock_own_cpu() - used) / 1e9;
        best = took < best ? took : best;
        cpu = own < cpu ? own : cpu;
        if (rows != 50)
            fprintf(stderr, "store_bench: %u rows, not 50\n", rows);
    }
    printf("  %-44s %10.1f ms (own CPU %.1f ms)\n", "the 50 largest functions", best * 1e3,
           cpu * 1e3);
    goal("of the goal, 200 ms", 1 / best, 1 / 0.2);
}

int main(int argc, char **argv)
{
    unsigned rows = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000000;
    struct job job = {.id = 2001, .created = clock_wall()};
    struct error err = {0};
    struct store *s;
    if (argc < 2)
        return 2;
    check(store_open(argv[1], &s, &err), &err);
    s->ops->job_remove(s, 2001, &err);
    check(store_job_create(s, &job, &err), &err);
    double fresh = measure(s, "node updates, functions that are new", "new", rows);
    double known = measure(s, "node updates, functions that are known", "known",
                           rows < 300000 ? rows : 300000);
    if (!strncmp(argv[1], "redis", 5)) {
        double raw[2];
        for (int i = 0; i < 2; i++) {
            raw[i] = raw_redis(argv[1], rows < 300000 ? rows : 300000, i == 1);
            printf("  %-44s %10.0f /s\n",
                   i ? "bare pipelined HINCRBY, known" : "bare pipelined HINCRBY, new", raw[i]);
        }
        goal("of the goal, 60 % of the bare client", known, 0.6 * raw[1]);
    } else if (!strncmp(argv[1], "sqlite", 6)) {
        goal("of the goal, 100,000 /s: new", fresh, 100000);
        goal("of the goal, 100,000 /s: known", known, 100000);
    }
    largest(s);
    check(s->ops->job_remove(s, 2001, &err), &err);
    store_close(s);
    return missed;
}
