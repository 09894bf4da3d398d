/*
 * One store into another, job by job: what batches brought besides counts under their own
 * keys, then counts day by day and curves in batches whose keys say which part they are, then
 * the keys that are left. Each step is a batch, so what was cut short can simply be begun again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "store/store.h"

#define PART_ROWS 20000

struct move {
    struct store *from, *to;
    struct store_migration *done;
    struct job job;
    struct batch batch; /* being filled */
    uint32_t day;       /* of its counts */
    unsigned part;
    const char *kind; /* of part: "counts", "curves", "keys" */
    const char *event;
    struct names recorded; /* keys of batches that brought recordings */
    bool mixed;            /* some of those brought results as well */
};

static int send(struct move *m, struct error *err)
{
    struct batch *b = &m->batch;
    struct store_outcome outcome;
    int rc = store_add(m->to, &b, 1, &outcome, err);
    if (!rc && outcome.rc) {
        *err = outcome.error;
        rc = outcome.rc;
    }
    batch_release(b);
    return rc;
}

/* Sends what has gathered as part `part` of what is being moved. */
static int send_part(struct move *m, struct error *err)
{
    struct batch *b = &m->batch;
    if (!b->counts.len && !b->points.len && !b->keys.len)
        return 0;
    struct text key = TEXT_INIT;
    text_format(&key, "moved:%s:%" PRIu64 ":%u", m->kind, m->job.created, m->part++);
    b->key = arena_strdup(&b->arena, key.data);
    b->job = m->job.id;
    b->moved = true;
    b->time = m->day ? m->day * STORE_DAY * 1000000000 : m->job.created;
    text_release(&key);
    return send(m, err);
}

static int take_count(void *context, const struct store_count *c, struct error *err)
{
    struct move *m = context;
    int rc = 0;
    if (m->batch.counts.len == PART_ROWS || (m->batch.counts.len && m->day != c->day))
        rc = send_part(m, err);
    m->day = c->day;
    batch_count(&m->batch, c->kind, c->event, c->executable, c->name, c->value);
    m->done->counts++;
    return rc;
}

static int take_point(void *context, const struct store_point *p, struct error *err)
{
    struct move *m = context;
    (void)err;
    *vector_push(&m->batch.points) =
        (struct batch_point){arena_strdup(&m->batch.arena, m->event), p->time, p->value};
    return m->batch.points.len < PART_ROWS ? 0 : send_part(m, err);
}

static int take_key(void *context, const char *key, uint64_t time, struct error *err)
{
    struct move *m = context;
    if (batch_key_moved(key))
        return 0;
    *vector_push(&m->batch.keys) = (struct batch_key){arena_strdup(&m->batch.arena, key), time};
    return m->batch.keys.len < PART_ROWS ? 0 : send_part(m, err);
}

static int move_counts(struct move *m, struct error *err)
{
    m->kind = "counts";
    m->part = 0;
    for (int kind = 0; kind < COUNT_KINDS; kind++) {
        struct store_query q = {.job = m->job.id, .kind = (enum count_kind)kind, .by_day = true};
        m->day = 0;
        int rc = store_counts(m->from, &q, take_count, m, err);
        if (!rc)
            rc = send_part(m, err);
        if (rc)
            return rc;
    }
    m->day = 0;
    return 0;
}

struct event_list {
    struct arena arena;
    VECTOR(const char *) names;
};

static int take_event(void *context, const struct store_event *e, struct error *err)
{
    struct event_list *list = context;
    (void)err;
    *vector_push(&list->names) = arena_strdup(&list->arena, e->name);
    return 0;
}

static int move_curves(struct move *m, struct error *err)
{
    struct event_list list = {0};
    int rc = m->from->ops->events(m->from, m->job.id, take_event, &list, err);
    m->kind = "curves";
    m->part = 0;
    for (size_t i = 0; !rc && i < list.names.len; i++) {
        m->event = list.names.data[i];
        rc = m->from->ops->curve(m->from, m->job.id, m->event, take_point, m, err);
        if (!rc)
            rc = send_part(m, err);
    }
    vector_release(&list.names);
    arena_release(&list.arena);
    return rc;
}

static void begin(struct move *m, const char *key, const char *host, uint64_t time)
{
    struct batch *b = &m->batch;
    b->key = arena_strdup(&b->arena, key);
    b->host = arena_strdup(&b->arena, host);
    b->time = time;
    b->job = m->job.id;
    b->moved = true;
}

static void put_bench(struct move *m, const struct store_bench *r)
{
    struct batch *b = &m->batch;
    *vector_push(&b->bench) =
        (struct batch_bench){arena_strdup(&b->arena, r->name), arena_strdup(&b->arena, r->json)};
    m->done->bench++;
}

/* Results that came with one batch go on as one; those that came with a recording, with it. */
static int take_bench(void *context, const struct store_bench *r, struct error *err)
{
    struct move *m = context;
    int rc = 0;
    if (names_find(&m->recorded, r->key) != NAMES_NONE) {
        m->mixed = true;
        return 0;
    }
    if (m->batch.key && strcmp(m->batch.key, r->key) != 0)
        rc = send(m, err);
    if (!m->batch.key)
        begin(m, r->key, r->host, r->time);
    put_bench(m, r);
    return rc;
}

static int take_bench_of_key(void *context, const struct store_bench *r, struct error *err)
{
    struct move *m = context;
    (void)err;
    if (!strcmp(m->batch.key, r->key))
        put_bench(m, r);
    return 0;
}

static int take_recording_key(void *context, const struct store_recording *r, struct error *err)
{
    struct move *m = context;
    (void)err;
    names_add(&m->recorded, r->key);
    return 0;
}

static int take_recording(void *context, const struct store_recording *r, struct error *err)
{
    struct move *m = context;
    void *data = NULL;
    size_t size = 0;
    int rc = m->from->ops->recording(m->from, m->job.id, r->key, &data, &size, err);
    if (rc)
        return rc;
    begin(m, r->key, r->host, r->time);
    m->batch.recording_name = arena_strdup(&m->batch.arena, r->name);
    m->batch.recording = data;
    m->batch.recording_size = size;
    if (m->mixed)
        rc = m->from->ops->bench(m->from, m->job.id, take_bench_of_key, m, err);
    if (!rc)
        rc = send(m, err);
    free(data);
    m->done->recordings++;
    return rc;
}

static int move_results(struct move *m, struct error *err)
{
    m->mixed = false;
    int rc = m->from->ops->recordings(m->from, m->job.id, take_recording_key, m, err);
    if (!rc)
        rc = m->from->ops->bench(m->from, m->job.id, take_bench, m, err);
    if (!rc && m->batch.key)
        rc = send(m, err);
    if (!rc)
        rc = m->from->ops->recordings(m->from, m->job.id, take_recording, m, err);
    names_release(&m->recorded);
    return rc;
}

static int move_keys(struct move *m, struct error *err)
{
    m->kind = "keys";
    m->part = 0;
    int rc = m->from->ops->keys(m->from, m->job.id, take_key, m, err);
    return rc ? rc : send_part(m, err);
}

/* How far a migration of this job has come is noted in the store that it goes to, by keys. */
struct progress {
    char begun[BATCH_KEY_MAX + 1], finished[BATCH_KEY_MAX + 1];
    bool is_begun, is_finished;
};

static int find_progress(void *context, const char *key, uint64_t time, struct error *err)
{
    struct progress *p = context;
    (void)time;
    (void)err;
    p->is_begun |= !strcmp(key, p->begun);
    p->is_finished |= !strcmp(key, p->finished);
    return 0;
}

static int note_progress(struct move *m, const char *key, struct error *err)
{
    begin(m, key, "", m->job.created);
    return send(m, err);
}

/* The job itself: made, or there from a migration that was cut short. Any other is left alone, be
 * it the very one that is to be moved: its counts would be there twice. */
static int make_job(struct move *m, struct progress *p, struct error *err)
{
    struct job there, job = m->job;
    if (!m->to->ops->job_get(m->to, job.id, &there, &(struct error){0})) {
        int rc = m->to->ops->keys(m->to, job.id, find_progress, p, err);
        if (!rc && (!p->is_begun || there.created != job.created || strcmp(there.info, job.info)))
            rc = error_set(err, FAULT_USAGE, "the store to move to has a job %u of its own already",
                           job.id);
        return rc;
    }
    int rc = store_job_create(m->to, &job, err);
    return rc ? rc : note_progress(m, p->begun, err);
}

static int move_all(struct move *m, const struct progress *p, struct error *err)
{
    int rc = move_results(m, err);
    if (!rc)
        rc = move_counts(m, err);
    if (!rc)
        rc = move_curves(m, err);
    if (!rc)
        rc = move_keys(m, err);
    if (!rc)
        rc = note_progress(m, p->finished, err);
    batch_release(&m->batch);
    m->done->jobs += rc == 0;
    return rc;
}

static int move_job(void *context, const struct job *job, struct error *err)
{
    struct move *m = context;
    struct progress p = {0};
    m->job = *job;
    snprintf(p.begun, sizeof p.begun, "moved:begun:%" PRIu64, job->created);
    snprintf(p.finished, sizeof p.finished, "moved:finished:%" PRIu64, job->created);
    int rc = make_job(m, &p, err);
    m->done->there += !rc && p.is_finished;
    return rc || p.is_finished ? rc : move_all(m, &p, err);
}

int store_migrate(struct store *from, struct store *to, struct store_migration *done,
                  struct error *err)
{
    struct move m = {.from = from, .to = to, .done = done};
    return from->ops->job_list(from, move_job, &m, err);
}
