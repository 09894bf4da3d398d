/* Batches to store, and what a store says it holds; see store_sample.h. */
#include "store_sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static char folder[] = "/tmp/sonde-test-XXXXXX";
static struct text url;

static int note_job(void *context, const struct job *job, struct error *err)
{
    (void)err;
    uint32_t *ids = context;
    ids[++ids[0]] = job->id;
    return 0;
}

void sample_clean(struct store *s)
{
    static uint32_t ids[10000];
    struct error err = {0};
    ids[0] = 0;
    assert_int_equal(s->ops->job_list(s, note_job, ids, &err), 0);
    for (uint32_t i = 1; i <= ids[0]; i++)
        assert_int_equal(s->ops->job_remove(s, ids[i], &err), 0);
}

struct store *sample_open_again(void)
{
    struct store *s = NULL;
    struct error err = {0};
    int rc = store_open(url.data, &s, &err);
    if (rc)
        fail_msg("%s", err.text);
    return s;
}

struct store *sample_open(void)
{
    if (!url.data) {
        const char *named = getenv("SONDE_STORE");
        text_init(&url);
        if (named)
            text_add(&url, named);
        else
            text_format(&url, "sqlite:%s/jobs.db", mkdtemp(folder));
    }
    struct store *s = sample_open_again();
    sample_clean(s);
    return s;
}

uint32_t sample_job(struct store *s, uint32_t id, const char *info)
{
    struct job job = {.id = id, .created = SAMPLE_TIME};
    struct error err = {0};
    snprintf(job.info, sizeof job.info, "%s", info);
    if (store_job_create(s, &job, &err))
        fail_msg("%s", err.text);
    return job.id;
}

void sample_batch(struct batch *b, uint32_t job, const char *key, uint64_t time)
{
    *b = (struct batch){.job = job, .time = time};
    b->key = arena_strdup(&b->arena, key);
    b->host = "here";
}

bool sample_add(struct store *s, struct batch *b)
{
    struct store_outcome outcome = {0};
    struct error err = {0};
    if (store_add(s, &b, 1, &outcome, &err) || outcome.rc)
        fail_msg("%s%s", err.text, outcome.error.text);
    batch_release(b);
    return outcome.duplicate;
}

struct wanted {
    const char *executable, *name;
    int64_t value;
    size_t rows;
};

static int add_up(void *context, const struct store_count *c, struct error *err)
{
    struct wanted *w = context;
    (void)err;
    w->rows++;
    if ((!w->executable || !strcmp(w->executable, c->executable)) &&
        (!w->name || !strcmp(w->name, c->name)))
        w->value += c->value;
    return 0;
}

int64_t sample_value(struct store *s, uint32_t job, enum count_kind kind, const char *event,
                     const char *executable, const char *name)
{
    struct wanted w = {executable, name, 0, 0};
    struct store_query q = {.job = job, .kind = kind, .event = event};
    struct error err = {0};
    if (store_counts(s, &q, add_up, &w, &err))
        fail_msg("%s", err.text);
    return w.value;
}

size_t sample_rows(struct store *s, uint32_t job, enum count_kind kind)
{
    struct wanted w = {0};
    struct store_query q = {.job = job, .kind = kind};
    struct error err = {0};
    if (store_counts(s, &q, add_up, &w, &err))
        fail_msg("%s", err.text);
    return w.rows;
}

static int find_event(void *context, const struct store_event *e, struct error *err)
{
    struct wanted *w = context;
    (void)err;
    if (!strcmp(w->name, e->name))
        w->value = e->value;
    return 0;
}

int64_t sample_event(struct store *s, uint32_t job, const char *event)
{
    struct wanted w = {.name = event, .value = -1};
    struct error err = {0};
    if (s->ops->events(s, job, find_event, &w, &err))
        fail_msg("%s", err.text);
    return w.value;
}
