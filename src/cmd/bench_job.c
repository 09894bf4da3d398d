/* Benchmark results into a job; see bench_job.h. */
#include "cmd/bench_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cmd/remote.h"

#define FUNCTIONS_SHARE 0.001               /* of a run: functions below are left out */
#define RESULT_SIZE (BATCH_BENCH_SIZE / 2u) /* bytes: no further function after that */

struct bench_job {
    struct remote *remote;
    uint32_t job;
    bool quiet;
    char session[BATCH_KEY_MAX + 1], host[256];
    VECTOR(size_t) taken; /* values of each metric and variant that were sent before */
    unsigned rounds;
    struct remote_pushed last;
    struct error why; /* that the last one waits */
};

int bench_job_open(const char *url, uint32_t job, bool quiet, struct bench_job **out,
                   struct error *err)
{
    struct bench_job *j = memory_alloc(sizeof *j);
    j->job = job;
    j->quiet = quiet;
    batch_key_make(j->session);
    remote_host(j->host, sizeof j->host);
    int rc = remote_open(url, &j->remote, err);
    if (!rc)
        rc = remote_check_job(j->remote, job, "what is measured", quiet, err);
    if (rc) {
        j->quiet = true;
        bench_job_free(j);
    } else {
        *out = j;
    }
    return rc;
}

static void put_metrics(struct bench_job *j, const struct benchmark *b, size_t variant,
                        struct json *json)
{
    while (j->taken.len < b->metrics.len * BENCHMARK_VARIANTS_MAX)
        *vector_push(&j->taken) = 0;
    for (size_t i = 0; i < b->metrics.len; i++) {
        const struct benchmark_series *s = &b->metrics.data[i];
        size_t len = s->values[variant].len,
               *taken = &j->taken.data[i * BENCHMARK_VARIANTS_MAX + variant];
        if (len == *taken) /* not known of this run */
            continue;
        *taken = len;
        double value = s->values[variant].data[len - 1];
        json_put_double(json, s->name, s->kind == VIEW_DURATION ? value / 1e9 : value);
    }
}

static double value_of(const struct benchmark_series *s, size_t variant, size_t run)
{
    return run < s->values[variant].len ? s->values[variant].data[run] : 0;
}

static void put_functions(const struct benchmark *b, size_t variant, size_t run, struct json *json)
{
    double whole = 0;
    for (size_t i = 0; i < b->functions.len; i++)
        whole += value_of(&b->functions.data[i], variant, run);
    if (whole <= 0)
        return;
    json_key(json, "functions");
    json_open_array(json);
    for (size_t i = 0; i < b->functions.len && json->out.len < RESULT_SIZE; i++) {
        const struct benchmark_series *s = &b->functions.data[i];
        double value = value_of(s, variant, run);
        if (value < whole * FUNCTIONS_SHARE || strlen(s->name) > BATCH_NAME_MAX)
            continue;
        json_open_object(json);
        json_put_string(json, "function", s->name);
        json_put_string(json, "module", s->module);
        json_put_double(json, "seconds", value / 1e9);
        json_end(json);
    }
    json_end(json);
}

/* Times in seconds, as those who read results elsewhere have them; all else as it is. What is a
 * number stands for a measurement, so which run it was is told apart. */
static void make_result(struct bench_job *j, const struct benchmark *b, size_t variant, size_t run,
                        struct batch *out)
{
    struct json json;
    json_init(&json, NULL, NULL);
    json_open_object(&json);
    put_metrics(j, b, variant, &json);
    json_key(&json, "session");
    json_open_object(&json);
    json_put_string(&json, "key", j->session);
    json_put_uint(&json, "round", run + 1);
    json_end(&json);
    if (strlen(b->variants.data[variant].command) < BATCH_NAME_MAX)
        json_put_string(&json, "command", b->variants.data[variant].command);
    put_functions(b, variant, run, &json);
    json_end(&json);
    json_finish(&json);
    const char *name = b->variants.data[variant].name, *slash = strrchr(name, '/');
    *vector_push(&out->bench) =
        (struct batch_bench){.name = slash && slash[1] ? slash + 1 : name,
                             .json = arena_strndup(&out->arena, json.out.data, json.out.len)};
    json_release(&json);
}

int bench_job_add(struct bench_job *j, const struct benchmark *b, size_t run, struct error *err)
{
    char key[BATCH_KEY_MAX + 1];
    struct batch batch = {.host = j->host, .key = key, .job = j->job};
    struct error why = {0};
    snprintf(key, sizeof key, "%.48s.%zu", j->session, run + 1);
    for (size_t i = 0; i < b->variants.len; i++)
        make_result(j, b, i, run, &batch);
    int rc = remote_push(j->remote, j->job, &batch, &j->last, &why);
    batch_release(&batch);
    if (rc)
        *err = why;
    else
        j->why = why; /* a server that is away is told of at the end, and is no failure */
    j->rounds += rc == 0;
    return rc;
}

void bench_job_free(struct bench_job *j)
{
    if (!j)
        return;
    if (!j->quiet && j->last.waiting)
        remote_say_waiting("bench", j->last.waiting, &j->why);
    else if (!j->quiet && j->rounds)
        fprintf(stderr, "sonde bench: %u rounds added to job %u of %s\n", j->rounds, j->job,
                remote_url(j->remote));
    vector_release(&j->taken);
    remote_free(j->remote);
    free(j);
}
