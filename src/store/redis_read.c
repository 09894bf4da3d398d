/* What Redis holds of a job; see redis.c for the keys. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "store/redis_internal.h"

#define SCAN_COUNT 20000
#define ASK_AT_ONCE 4096

static const char *text_of(const redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

static uint64_t number_of(const redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? strtoull(r->str, NULL, 10) : 0;
}

/* 1 if it is there, 0 if not. */
static int read_job(struct redis_net *l, uint32_t id, struct job *out, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "HMGET");
    redis_key(&c, id, "job");
    redis_word(&c, "info");
    redis_word(&c, "created");
    redis_word(&c, "updated");
    redis_word(&c, "batches");
    int rc = redis_of_job(l, id, &c, &r, err);
    redis_command_release(&c);
    if (rc)
        return rc;
    bool there = r->elements == 4 && r->element[1]->type == REDIS_REPLY_STRING;
    if (there) {
        *out = (struct job){.id = id,
                            .created = number_of(r->element[1]),
                            .updated = number_of(r->element[2]),
                            .batches = number_of(r->element[3])};
        snprintf(out->info, sizeof out->info, "%s", text_of(r->element[0]));
    }
    freeReplyObject(r);
    return there;
}

int redis_job_get(struct store *s, uint32_t id, struct job *out, struct error *err)
{
    int rc = read_job(REDIS_OF(s), id, out, err);
    return rc == 0 ? error_set(err, FAULT_MISSING, "there is no job %u", id) : rc < 0 ? rc : 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int redis_job_list(struct store *s, store_job_fn *fn, void *context, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "SMEMBERS");
    redis_word(&c, REDIS_JOBS);
    int rc = redis_call(REDIS_OF(s), REDIS_JOBS, &c, &r, err);
    redis_command_release(&c);
    if (rc)
        return rc;
    uint32_t *ids = memory_array(r->elements + 1, sizeof *ids);
    size_t count = r->elements;
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)number_of(r->element[i]);
    freeReplyObject(r);
    qsort(ids, count, sizeof *ids, by_number);
    for (size_t i = 0; !rc && i < count; i++) {
        struct job job;
        rc = read_job(REDIS_OF(s), ids[i], &job, err);
        rc = rc == 1 ? fn(context, &job, err) : rc;
    }
    free(ids);
    return rc;
}

/* A command of one word and one key, of a job that is there. */
static int ask(struct store *s, uint32_t job, const char *word, const char *key, const char *last,
               redisReply **out, struct error *err)
{
    struct redis_command c = {0};
    struct job ignored;
    int rc = redis_job_get(s, job, &ignored, err);
    if (rc)
        return rc;
    redis_word(&c, word);
    redis_key(&c, job, "%s", key);
    if (last) {
        redis_word(&c, "0");
        redis_word(&c, last);
    }
    rc = redis_of_job(REDIS_OF(s), job, &c, out, err);
    redis_command_release(&c);
    return rc;
}

/* "day:kind:event" */
struct set {
    char *name;
    uint32_t day;
    const char *event;
};

struct sets {
    struct set *data;
    size_t len, cap;
};

static void release_sets(struct sets *sets)
{
    for (size_t i = 0; i < sets->len; i++)
        free(sets->data[i].name);
    vector_release(sets);
}

static bool wanted(const struct store_query *q, const char *text, struct set *out)
{
    char *end;
    out->day = (uint32_t)strtoul(text, &end, 10);
    if (*end != ':' || strtoul(end + 1, &end, 10) != (unsigned long)q->kind || *end != ':')
        return false;
    return out->day >= q->from_day && (!q->to_day || out->day <= q->to_day) &&
           (!q->event || !strcmp(end + 1, q->event));
}

static int find_sets(struct store *s, const struct store_query *q, struct sets *out,
                     struct error *err)
{
    redisReply *r = NULL;
    int rc = ask(s, q->job, "SMEMBERS", "sets", NULL, &r, err);
    for (size_t i = 0; !rc && i < r->elements; i++) {
        struct set set;
        if (!wanted(q, text_of(r->element[i]), &set))
            continue;
        set.name = memory_strdup(r->element[i]->str);
        set.event = strchr(strchr(set.name, ':') + 1, ':') + 1;
        *vector_push(out) = set;
    }
    if (r)
        freeReplyObject(r);
    return rc;
}

/* Sums by field over several sets. */
struct sums {
    struct names fields;
    VECTOR(int64_t) values;
};

static void sums_add(struct sums *s, const char *field, int64_t value)
{
    uint32_t at = names_add(&s->fields, field);
    if (at == s->values.len)
        *vector_push(&s->values) = 0;
    s->values.data[at] += value;
}

static void sums_release(struct sums *s)
{
    names_release(&s->fields);
    vector_release(&s->values);
}

/* "3:appparse" is function parse of app. */
static int hand_over(const char *field, const char *event, uint32_t day, enum count_kind kind,
                     int64_t value, store_count_fn *fn, void *context, struct error *err)
{
    char *end;
    size_t len = strtoul(field, &end, 10);
    if (*end != ':' || len > strlen(end + 1))
        return 0;
    char *executable = memory_strndup(end + 1, len);
    struct store_count count = {.kind = kind,
                                .day = day,
                                .event = event,
                                .executable = executable,
                                .name = end + 1 + len,
                                .value = value};
    int rc = fn(context, &count, err);
    free(executable);
    return rc;
}

/* Every field of a hash, some at a time. A field may come twice, with its newest value. */
static int scan_set(struct store *s, uint32_t job, const char *set, struct sums *out,
                    struct error *err)
{
    struct sums own = {0};
    char cursor[32] = "0";
    int rc = 0;
    do {
        struct redis_command c = {0};
        redisReply *r = NULL;
        if ((rc = store_go_on(s, err)))
            break;
        redis_word(&c, "HSCAN");
        redis_key(&c, job, "c:%s", set);
        redis_word(&c, cursor);
        redis_word(&c, "COUNT");
        redis_number(&c, SCAN_COUNT);
        rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
        redis_command_release(&c);
        if (rc)
            break;
        snprintf(cursor, sizeof cursor, "%s", text_of(r->element[0]));
        const redisReply *list = r->element[1];
        for (size_t i = 0; i + 1 < list->elements; i += 2) {
            size_t known = own.fields.len;
            uint32_t at = names_add(&own.fields, text_of(list->element[i]));
            int64_t value = (int64_t)number_of(list->element[i + 1]);
            if (own.fields.len > known)
                *vector_push(&own.values) = value;
            else
                own.values.data[at] = value;
        }
        freeReplyObject(r);
    } while (strcmp(cursor, "0") != 0);
    for (size_t i = 0; !rc && i < own.fields.len; i++)
        sums_add(out, own.fields.text[i], own.values.data[i]);
    sums_release(&own);
    return rc;
}

static int hand_sums(const struct sums *sums, const char *event, uint32_t day, enum count_kind kind,
                     store_count_fn *fn, void *context, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sums->fields.len; i++)
        rc = hand_over(sums->fields.text[i], event, day, kind, sums->values.data[i], fn, context,
                       err);
    return rc;
}

static int by_event(const void *a, const void *b)
{
    const struct set *x = a, *y = b;
    int order = strcmp(x->event, y->event);
    return order ? order : x->day < y->day ? -1 : x->day > y->day;
}

static int all_counts(struct store *s, const struct store_query *q, struct sets *sets,
                      store_count_fn *fn, void *context, struct error *err)
{
    struct sums sums = {0};
    int rc = 0;
    qsort(sets->data, sets->len, sizeof *sets->data, by_event);
    for (size_t i = 0; !rc && i < sets->len; i++) {
        const struct set *set = &sets->data[i];
        bool last = i + 1 == sets->len || q->by_day || strcmp(set->event, sets->data[i + 1].event);
        rc = scan_set(s, q->job, set->name, &sums, err);
        if (!rc && last) {
            rc = hand_sums(&sums, set->event, q->by_day ? set->day : 0, q->kind, fn, context, err);
            sums_release(&sums);
        }
    }
    sums_release(&sums);
    return rc;
}

/* The floor of a set: a count above it is in its sorted set. */
static int read_floor(struct store *s, uint32_t job, const char *set, double *floor,
                      struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "HGET");
    redis_key(&c, job, "floor");
    redis_word(&c, set);
    int rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
    redis_command_release(&c);
    if (rc)
        return rc;
    *floor = r->type == REDIS_REPLY_STRING ? strtod(r->str, NULL) : 0;
    freeReplyObject(r);
    return 0;
}

static int read_candidates(struct store *s, uint32_t job, const char *set, size_t top,
                           struct names *out, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "ZREVRANGE");
    redis_key(&c, job, "z:%s", set);
    redis_word(&c, "0");
    redis_number(&c, (int64_t)top - 1);
    int rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
    redis_command_release(&c);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->elements; i++)
        names_add(out, text_of(r->element[i]));
    freeReplyObject(r);
    return 0;
}

/* What the set has of each candidate, added to its sum. */
static int add_values(struct store *s, uint32_t job, const char *set, const struct names *fields,
                      int64_t *values, struct error *err)
{
    int rc = 0;
    for (size_t from = 0; !rc && from < fields->len; from += ASK_AT_ONCE) {
        struct redis_command c = {0};
        redisReply *r = NULL;
        redis_word(&c, "HMGET");
        redis_key(&c, job, "c:%s", set);
        for (size_t i = from; i < fields->len && i < from + ASK_AT_ONCE; i++)
            redis_word(&c, fields->text[i]);
        rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
        redis_command_release(&c);
        if (rc)
            break;
        for (size_t i = 0; i < r->elements; i++)
            values[from + i] += (int64_t)number_of(r->element[i]);
        freeReplyObject(r);
    }
    return rc;
}

struct ranked {
    const char *field;
    int64_t value;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return strcmp(x->field, y->field);
}

static int hand_ranked(const struct store_query *q, const struct names *fields,
                       const int64_t *values, double bound, bool *sure, store_count_fn *fn,
                       void *context, struct error *err)
{
    struct ranked *all = memory_array(fields->len + 1, sizeof *all);
    int rc = 0;
    for (size_t i = 0; i < fields->len; i++)
        all[i] = (struct ranked){fields->text[i], values[i]};
    qsort(all, fields->len, sizeof *all, by_value);
    size_t shown = q->top < fields->len ? q->top : fields->len;
    *sure = bound <= 0 || (shown == q->top && (double)all[shown - 1].value >= bound);
    for (size_t i = 0; *sure && !rc && i < shown; i++)
        rc = hand_over(all[i].field, q->event, 0, q->kind, all[i].value, fn, context, err);
    free(all);
    return rc;
}

/*
 * The largest over several days, without reading all: whoever is in no day's sorted set has at most
 * the sum of the floors. If the last of those asked for has more than that, they are the largest;
 * otherwise everything is read.
 */
static int top_counts(struct store *s, const struct store_query *q, const struct sets *sets,
                      store_count_fn *fn, void *context, struct error *err)
{
    struct names fields = {0};
    double bound = 0, floor = 0;
    bool sure = false;
    int rc = 0;
    for (size_t i = 0; !rc && i < sets->len; i++) {
        rc = read_floor(s, q->job, sets->data[i].name, &floor, err);
        bound += floor;
        if (!rc)
            rc = read_candidates(s, q->job, sets->data[i].name, sets->len == 1 ? q->top : 1u << 20,
                                 &fields, err);
    }
    if (sets->len == 1 && fields.len == q->top)
        bound = 0; /* they stand in order already */
    int64_t *values = memory_array(fields.len + 1, sizeof *values);
    for (size_t i = 0; !rc && i < sets->len; i++)
        rc = add_values(s, q->job, sets->data[i].name, &fields, values, err);
    if (!rc)
        rc = hand_ranked(q, &fields, values, bound, &sure, fn, context, err);
    free(values);
    names_release(&fields);
    if (rc || sure)
        return rc;
    struct sums sums = {0};
    for (size_t i = 0; !rc && i < sets->len; i++)
        rc = scan_set(s, q->job, sets->data[i].name, &sums, err);
    if (!rc)
        rc = hand_ranked(q, &sums.fields, sums.values.data, 0, &sure, fn, context, err);
    sums_release(&sums);
    return rc;
}

int redis_counts(struct store *s, const struct store_query *q, store_count_fn *fn, void *context,
                 struct error *err)
{
    struct sets sets = {0};
    int rc = find_sets(s, q, &sets, err);
    if (!rc && sets.len)
        rc = q->top ? top_counts(s, q, &sets, fn, context, err)
                    : all_counts(s, q, &sets, fn, context, err);
    release_sets(&sets);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp((*(redisReply *const *)a)->str, (*(redisReply *const *)b)->str);
}

int redis_events(struct store *s, uint32_t job, store_event_fn *fn, void *context,
                 struct error *err)
{
    redisReply *r = NULL;
    int rc = ask(s, job, "SMEMBERS", "events", NULL, &r, err);
    if (rc)
        return rc;
    if (r->elements)
        qsort(r->element, r->elements, sizeof *r->element, by_text);
    for (size_t i = 0; !rc && i < r->elements; i++) {
        struct store_event e = {.name = text_of(r->element[i])};
        struct redis_command c = {0};
        redisReply *values = NULL;
        redis_word(&c, "HVALS");
        redis_key(&c, job, "v:%s", e.name);
        rc = redis_of_job(REDIS_OF(s), job, &c, &values, err);
        redis_command_release(&c);
        for (size_t k = 0; !rc && k < values->elements; k++)
            e.value += (int64_t)number_of(values->element[k]);
        if (!rc && values->elements)
            rc = fn(context, &e, err);
        if (values)
            freeReplyObject(values);
    }
    freeReplyObject(r);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct store_point *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

int redis_curve(struct store *s, uint32_t job, const char *event, store_point_fn *fn, void *context,
                struct error *err)
{
    redisReply *r = NULL;
    struct text key = TEXT_INIT;
    text_format(&key, "v:%s", event);
    int rc = ask(s, job, "HGETALL", key.data, NULL, &r, err);
    text_release(&key);
    if (rc)
        return rc;
    size_t count = r->elements / 2;
    struct store_point *points = memory_array(count + 1, sizeof *points);
    for (size_t i = 0; i < count; i++)
        points[i] = (struct store_point){number_of(r->element[2 * i]),
                                         (int64_t)number_of(r->element[2 * i + 1])};
    qsort(points, count, sizeof *points, by_time);
    for (size_t i = 0; !rc && i < count; i++)
        rc = fn(context, &points[i], err);
    free(points);
    freeReplyObject(r);
    return rc;
}

static int oldest_first(const void *a, const void *b)
{
    const redisReply *x = *(redisReply *const *)a, *y = *(redisReply *const *)b;
    uint64_t first = number_of(x), second = number_of(y);
    return first != second ? first < second ? -1 : 1 : x->integer < y->integer ? -1 : 1;
}

int redis_bench(struct store *s, uint32_t job, store_bench_fn *fn, void *context, struct error *err)
{
    redisReply *r = NULL;
    int rc = ask(s, job, "LRANGE", "bench", "-1", &r, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < r->elements; i++)
        r->element[i]->integer = (long long)i; /* of no use in a text: equals keep their order */
    if (r->elements)
        qsort(r->element, r->elements, sizeof *r->element, oldest_first);
    for (size_t i = 0; !rc && i < r->elements; i++) {
        const char *part = text_of(r->element[i]), *end = part + r->element[i]->len;
        struct store_bench b = {.time = strtoull(part, NULL, 10)};
        const char **into[] = {&b.key, &b.host, &b.name, &b.json};
        size_t k = 0;
        for (; k < 4 && part + strlen(part) < end; k++) {
            part += strlen(part) + 1;
            *into[k] = part;
        }
        if (k == 4)
            rc = fn(context, &b, err);
    }
    freeReplyObject(r);
    return rc;
}

int redis_recordings(struct store *s, uint32_t job, store_recording_fn *fn, void *context,
                     struct error *err)
{
    redisReply *r = NULL;
    int rc = ask(s, job, "ZRANGE", "rs", "-1", &r, err);
    for (size_t i = 0; !rc && i < r->elements; i++) {
        struct redis_command c = {0};
        redisReply *facts = NULL;
        redis_word(&c, "HMGET");
        redis_key(&c, job, "r:%s", text_of(r->element[i]));
        redis_word(&c, "name");
        redis_word(&c, "host");
        redis_word(&c, "time");
        redis_word(&c, "size");
        rc = redis_of_job(REDIS_OF(s), job, &c, &facts, err);
        redis_command_release(&c);
        if (rc)
            break;
        struct store_recording found = {.key = text_of(r->element[i]),
                                        .name = text_of(facts->element[0]),
                                        .host = text_of(facts->element[1]),
                                        .time = number_of(facts->element[2]),
                                        .size = number_of(facts->element[3])};
        rc = fn(context, &found, err);
        freeReplyObject(facts);
    }
    if (r)
        freeReplyObject(r);
    return rc;
}

int redis_recording(struct store *s, uint32_t job, const char *key, void **data, size_t *size,
                    struct error *err)
{
    struct redis_command c = {0};
    struct job ignored;
    redisReply *r = NULL;
    int rc = redis_job_get(s, job, &ignored, err);
    if (rc)
        return rc;
    redis_word(&c, "HGET");
    redis_key(&c, job, "r:%s", key);
    redis_word(&c, "data");
    rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
    redis_command_release(&c);
    if (!rc && r->type != REDIS_REPLY_STRING)
        rc = error_set(err, FAULT_MISSING, "job %u has no recording %s", job, key);
    if (!rc) {
        *size = (size_t)r->len;
        *data = memory_dup(r->str, *size + 1);
    }
    if (r)
        freeReplyObject(r);
    return rc;
}

int redis_keys(struct store *s, uint32_t job, store_key_fn *fn, void *context, struct error *err)
{
    struct redis_command c = {0};
    struct job ignored;
    redisReply *r = NULL;
    int rc = redis_job_get(s, job, &ignored, err);
    if (rc)
        return rc;
    redis_word(&c, "ZRANGE");
    redis_key(&c, job, "keys");
    redis_word(&c, "0");
    redis_word(&c, "-1");
    redis_word(&c, "WITHSCORES");
    rc = redis_of_job(REDIS_OF(s), job, &c, &r, err);
    redis_command_release(&c);
    for (size_t i = 0; !rc && i + 1 < r->elements; i += 2)
        rc = fn(context, text_of(r->element[i]),
                (uint64_t)strtod(text_of(r->element[i + 1]), NULL) * 1000000, err);
    if (r)
        freeReplyObject(r);
    return rc;
}
