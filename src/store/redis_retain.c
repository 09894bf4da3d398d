/* What Redis lets go of; see redis.c for the keys. Each step is one script of one job. */
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "store/redis_internal.h"

/* prefix, first day that stays, its start (s), ms before which the rest goes, and 'time' in ns as
 * text for results. Answers with counts of sets, points and recordings that went. */
static const char FORGET[] =
    "local p, day, start, ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]\n"
    "local counts, points, recordings = 0, 0, 0\n"
    "for _, s in ipairs(redis.call('SMEMBERS', p..'sets')) do\n"
    "  if tonumber(string.match(s, '^%d+')) < day then\n"
    "    counts = counts + redis.call('HLEN', p..'c:'..s)\n"
    "    redis.call('UNLINK', p..'c:'..s, p..'z:'..s)\n"
    "    redis.call('SREM', p..'sets', s)\n"
    "    redis.call('HDEL', p..'floor', s)\n"
    "  end\n"
    "end\n"
    "for _, e in ipairs(redis.call('SMEMBERS', p..'events')) do\n"
    "  for _, t in ipairs(redis.call('HKEYS', p..'v:'..e)) do\n"
    "    if tonumber(t) < start then points = points + redis.call('HDEL', p..'v:'..e, t) end\n"
    "  end\n"
    "end\n"
    "for _, k in ipairs(redis.call('ZRANGEBYSCORE', p..'rs', '-inf', '('..ms)) do\n"
    "  redis.call('UNLINK', p..'r:'..k)\n"
    "  redis.call('ZREM', p..'rs', k)\n"
    "  recordings = recordings + 1\n"
    "end\n"
    "for _, b in ipairs(redis.call('LRANGE', p..'bench', 0, -1)) do\n"
    "  local t = string.match(b, '^%d+')\n"
    "  if tonumber(string.sub(t, 1, -7)) < tonumber(ms) then redis.call('LREM', p..'bench', 1, b) "
    "end\n"
    "end\n"
    "redis.call('ZREMRANGEBYSCORE', p..'keys', '-inf', '('..ms)\n"
    "return {counts, points, recordings}";

/* prefix, time before which points become one for each `width` seconds. */
static const char COARSEN[] =
    "local p, before, width, gone = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), 0\n"
    "for _, e in ipairs(redis.call('SMEMBERS', p..'events')) do\n"
    "  local all = redis.call('HGETALL', p..'v:'..e)\n"
    "  for i = 1, #all, 2 do\n"
    "    local t = tonumber(all[i])\n"
    "    if t < before and t % width ~= 0 then\n"
    "      redis.pcall('HINCRBY', p..'v:'..e, string.format('%.0f', t - t % width), all[i + 1])\n"
    "      redis.call('HDEL', p..'v:'..e, all[i])\n"
    "      gone = gone + 1\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return gone";

struct kept {
    uint32_t job;
    char key[BATCH_KEY_MAX + 1];
    uint64_t time, size;
};

struct retaining {
    struct store *store;
    const struct store_retention *how;
    struct store_removed *removed;
    uint64_t cut; /* ns */
    uint32_t job;
    VECTOR(uint32_t) idle;
    VECTOR(struct kept) kept;
};

static void begin(struct redis_command *c, uint32_t job)
{
    redis_number(c, 1);
    redis_key(c, job, "job");
    redis_key(c, job, "%s", "");
}

static int forget(struct retaining *t, uint32_t job, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    char key[32];
    uint32_t day = store_day(t->cut);
    redis_job_key(job, key);
    begin(&c, job);
    redis_number(&c, day);
    redis_number(&c, (int64_t)(day * STORE_DAY));
    redis_number(&c, (int64_t)(t->cut / 1000000));
    int rc = redis_script(REDIS_OF(t->store), key, FORGET, &c, &r, err);
    if (!rc && r->elements == 3) {
        t->removed->counts += (uint64_t)r->element[0]->integer;
        t->removed->points += (uint64_t)r->element[1]->integer;
        t->removed->recordings += (uint64_t)r->element[2]->integer;
    }
    if (r)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

static int coarsen(struct retaining *t, uint32_t job, uint64_t before, uint64_t width,
                   struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    char key[32];
    redis_job_key(job, key);
    begin(&c, job);
    redis_number(&c, (int64_t)before);
    redis_number(&c, (int64_t)width);
    int rc = redis_script(REDIS_OF(t->store), key, COARSEN, &c, &r, err);
    if (!rc) {
        t->removed->points += (uint64_t)r->integer;
        freeReplyObject(r);
    }
    redis_command_release(&c);
    return rc;
}

static int note_recording(void *context, const struct store_recording *r, struct error *err)
{
    struct retaining *t = context;
    (void)err;
    struct kept k = {.job = t->job, .time = r->time, .size = r->size};
    snprintf(k.key, sizeof k.key, "%s", r->key);
    *vector_push(&t->kept) = k;
    return 0;
}

static int retain_job(void *context, const struct job *job, struct error *err)
{
    struct retaining *t = context;
    uint64_t now = t->how->now / 1000000000;
    int rc = 0;
    t->job = job->id;
    if (t->how->keep && job->updated < t->cut)
        *vector_push(&t->idle) = job->id;
    if (t->how->keep)
        rc = forget(t, job->id, err);
    if (!rc)
        rc = coarsen(t, job->id, now - now % 3600 - 86400, 3600, err);
    if (!rc)
        rc = coarsen(t, job->id, now - now % 86400 - 31 * 86400, 86400, err);
    if (!rc && t->how->max_bytes)
        rc = redis_recordings(t->store, job->id, note_recording, t, err);
    return rc == FAULT_MISSING ? 0 : rc;
}

static int newest_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    return x->time > y->time ? -1 : x->time < y->time;
}

static int drop_recording(struct retaining *t, const struct kept *k, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "ZREM");
    redis_key(&c, k->job, "rs");
    redis_word(&c, k->key);
    int rc = redis_of_job(REDIS_OF(t->store), k->job, &c, &r, err);
    if (!rc) {
        freeReplyObject(r);
        redis_word(&c, "UNLINK");
        redis_key(&c, k->job, "r:%s", k->key);
        rc = redis_of_job(REDIS_OF(t->store), k->job, &c, &r, err);
    }
    if (!rc)
        freeReplyObject(r);
    redis_command_release(&c);
    t->removed->recordings += rc == 0;
    return rc;
}

static int drop_large(struct retaining *t, struct error *err)
{
    uint64_t sum = 0;
    int rc = 0;
    qsort(t->kept.data, t->kept.len, sizeof *t->kept.data, newest_first);
    for (size_t i = 0; !rc && i < t->kept.len; i++) {
        sum += t->kept.data[i].size;
        if (sum > t->how->max_bytes)
            rc = drop_recording(t, &t->kept.data[i], err);
    }
    return rc;
}

int redis_retain(struct store *s, const struct store_retention *how, struct store_removed *removed,
                 struct error *err)
{
    struct retaining t = {.store = s, .how = how, .removed = removed};
    t.cut = how->now > how->keep ? how->now - how->keep : 0;
    int rc = redis_job_list(s, retain_job, &t, err);
    for (size_t i = 0; !rc && i < t.idle.len; i++) {
        if (!store_job_idle(s, t.idle.data[i], t.cut))
            continue;
        rc = redis_job_remove(s, t.idle.data[i], err);
        removed->jobs += rc == 0;
        rc = rc == FAULT_MISSING ? 0 : rc;
    }
    if (!rc && how->max_bytes)
        rc = drop_large(&t, err);
    vector_release(&t.idle);
    vector_release(&t.kept);
    return rc;
}
