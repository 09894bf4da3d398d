/*
 * Jobs in Redis 7: a hash of counts for each (day, kind, event) of a job, which scripts add to
 * together with the key of the batch, so that it counts once. Beside each hash a sorted set holds
 * its largest: values only grow, so whatever may be among the largest passes through it (see
 * ADD). The braces in a job's keys keep it in one slot of a cluster.
 *
 *     sonde:{2001}:job           info, created, updated, batches
 *     sonde:{2001}:keys          sorted set of batches' keys by time (ms)
 *     sonde:{2001}:sets          "day:kind:event" of all there are, :floor the bounds of their :z:
 *     sonde:{2001}:c:SET         function -> count; sonde:{2001}:z:SET the largest of it
 *     sonde:{2001}:events        names; sonde:{2001}:v:EVENT minute -> sum
 *     sonde:{2001}:bench         list of results; sonde:{2001}:rs, :r:KEY recordings
 *     sonde:{2001}:live          stream of what was added; the channel sonde:jobs tells of it
 *     sonde:{jobs}               numbers of all jobs that ever were
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/redis_internal.h"

static const char CREATE[] =
    "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end\n"
    "redis.call('HSET', KEYS[1], 'info', ARGV[1], 'created', ARGV[2], 'updated', ARGV[2],"
    " 'batches', 0)\n"
    "return 1";

static const char REMOVE[] = "local p = ARGV[1]\n"
                             "if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end\n"
                             "for _, s in ipairs(redis.call('SMEMBERS', p..'sets')) do"
                             " redis.call('UNLINK', p..'c:'..s, p..'z:'..s) end\n"
                             "for _, e in ipairs(redis.call('SMEMBERS', p..'events')) do "
                             "redis.call('UNLINK', p..'v:'..e) end\n"
                             "for _, k in ipairs(redis.call('ZRANGE', p..'rs', 0, -1)) do "
                             "redis.call('UNLINK', p..'r:'..k) end\n"
                             "redis.call('UNLINK', KEYS[1], p..'keys', p..'sets', p..'floor', "
                             "p..'events', p..'bench', p..'rs',"
                             " p..'live')\n"
                             "return 1";

/*
 * prefix, key, ms, ns, counted (1 or 0), host, then five lists, each after its length: sets (each
 * with its own list of function and value), points (event, minute, value), results, keys (key,
 * ms), and a recording (name, bytes).
 *
 * The floor of a set is the largest count that was ever put out of its sorted set: every count
 * above it is in there.
 */
static const char ADD[] =
    "local p, i = ARGV[1], 7\n"
    "if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end\n"
    "if redis.call('ZADD', p..'keys', 'NX', ARGV[3], ARGV[2]) == 0 then return 0 end\n"
    "local batches, updates = tonumber(ARGV[5]), 0\n"
    "local function take() i = i + 1 return ARGV[i - 1] end\n"
    "for g = 1, tonumber(take()) do\n"
    "  local set, n = take(), tonumber(take())\n"
    "  local hash, top = p..'c:'..set, p..'z:'..set\n"
    "  local floor = tonumber(redis.call('HGET', p..'floor', set) or -1)\n"
    "  redis.call('SADD', p..'sets', set)\n"
    "  for k = i, i + 2 * n - 2, 2 do\n"
    "    local v = redis.pcall('HINCRBY', hash, ARGV[k], ARGV[k + 1])\n"
    "    if type(v) == 'number' and v > floor then redis.call('ZADD', top, v, ARGV[k]) end\n"
    "  end\n"
    "  i = i + 2 * n\n"
    "  updates = updates + n\n"
    "  local size = redis.call('ZCARD', top)\n"
    "  if size > 4096 then\n"
    "    local last = redis.call('ZRANGE', top, size - 2049, size - 2049, 'WITHSCORES')\n"
    "    redis.call('HSET', p..'floor', set, last[2])\n"
    "    redis.call('ZREMRANGEBYRANK', top, 0, size - 2049)\n"
    "  end\n"
    "end\n"
    "for g = 1, tonumber(take()) do\n"
    "  local e, minute, v = take(), take(), take()\n"
    "  redis.call('SADD', p..'events', e)\n"
    "  redis.pcall('HINCRBY', p..'v:'..e, minute, v)\n"
    "end\n"
    "for g = 1, tonumber(take()) do redis.call('RPUSH', p..'bench', take()) end\n"
    "for g = 1, tonumber(take()) do\n"
    "  local k, ms = take(), take()\n"
    "  batches = batches + redis.call('ZADD', p..'keys', 'NX', ms, k)\n"
    "end\n"
    "if tonumber(take()) == 1 then\n"
    "  local name, data = take(), take()\n"
    "  redis.call('ZADD', p..'rs', ARGV[3], ARGV[2])\n"
    "  redis.call('HSET', p..'r:'..ARGV[2], 'name', name, 'host', ARGV[6], 'time', ARGV[4],"
    " 'size', #data, 'data', data)\n"
    "end\n"
    "redis.call('HINCRBY', KEYS[1], 'batches', batches)\n"
    "local old = redis.call('HGET', KEYS[1], 'updated')\n"
    "if #ARGV[4] > #old or (#ARGV[4] == #old and ARGV[4] > old) then"
    " redis.call('HSET', KEYS[1], 'updated', ARGV[4]) end\n"
    "redis.call('XADD', p..'live', 'MAXLEN', '~', '1000', '*', 'key', ARGV[2], 'host', ARGV[6],"
    " 'counts', updates)\n"
    "redis.call('PUBLISH', 'sonde:jobs', ARGV[1])\n"
    "return 1";

void redis_key(struct redis_command *c, uint32_t job, const char *format, ...)
{
    struct text t = TEXT_INIT;
    va_list args;
    va_start(args, format);
    text_format(&t, "sonde:{%u}:", job);
    text_vformat(&t, format, args);
    va_end(args);
    redis_bytes(c, arena_strndup(&c->arena, t.data, t.len), t.len);
    text_release(&t);
}

void redis_job_key(uint32_t job, char out[32])
{
    snprintf(out, 32, "sonde:{%u}:job", job);
}

int redis_of_job(struct redis_net *l, uint32_t job, struct redis_command *c, redisReply **out,
                 struct error *err)
{
    char key[32];
    redis_job_key(job, key);
    return redis_call(l, key, c, out, err);
}

static int open_as(const char *url, bool tls, const struct store_ops *ops, struct store **out,
                   struct error *err)
{
    struct redis_store *s = memory_alloc(sizeof *s);
    s->store.ops = ops;
    int rc = redis_net_open(url, tls, &s->link, err);
    if (rc)
        free(s);
    else
        *out = &s->store;
    return rc;
}

static int open_plain(const char *url, struct store **out, struct error *err)
{
    return open_as(url, false, &store_redis, out, err);
}

static int open_tls(const char *url, struct store **out, struct error *err)
{
    return open_as(url, true, &store_rediss, out, err);
}

static void close_store(struct store *s)
{
    redis_net_free(REDIS_OF(s));
    free(s);
}

/* Runs a script of one job's that answers with a number. */
static int run_script(struct redis_net *l, uint32_t job, const char *script,
                      struct redis_command *c, long long *answer, struct error *err)
{
    char key[32];
    redisReply *r = NULL;
    redis_job_key(job, key);
    int rc = redis_script(l, key, script, c, &r, err);
    if (rc)
        return rc;
    *answer = r->integer;
    freeReplyObject(r);
    return 0;
}

static int ping(struct store *s, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "SCARD");
    redis_word(&c, REDIS_JOBS);
    int rc = redis_call(REDIS_OF(s), REDIS_JOBS, &c, &r, err);
    if (!rc)
        freeReplyObject(r);
    redis_command_release(&c);
    return rc;
}

/* First into the list, where a number without a job does no harm, then the job. */
static int claim(struct redis_net *l, const struct job *job, long long *won, struct error *err)
{
    struct redis_command c = {0};
    redisReply *r = NULL;
    redis_word(&c, "SADD");
    redis_word(&c, REDIS_JOBS);
    redis_number(&c, job->id);
    int rc = redis_call(l, REDIS_JOBS, &c, &r, err);
    if (!rc) {
        freeReplyObject(r);
        redis_number(&c, 1);
        redis_key(&c, job->id, "job");
        redis_word(&c, job->info);
        redis_format(&c, "%llu", (unsigned long long)job->created);
        rc = run_script(l, job->id, CREATE, &c, won, err);
    }
    redis_command_release(&c);
    return rc;
}

static int job_create(struct store *s, struct job *job, struct error *err)
{
    bool any = !job->id;
    for (;;) {
        long long won = 0;
        int rc = any ? store_next_free(s, &job->id, err) : 0;
        if (!rc)
            rc = claim(REDIS_OF(s), job, &won, err);
        if (rc || won)
            return rc;
        if (!any)
            return error_set(err, FAULT_USAGE, "job %u is there already; choose another number",
                             job->id);
    }
}

int redis_job_remove(struct store *s, uint32_t id, struct error *err)
{
    struct redis_command c = {0};
    long long there = 0;
    redis_number(&c, 1);
    redis_key(&c, id, "job");
    redis_key(&c, id, "%s", "");
    int rc = run_script(REDIS_OF(s), id, REMOVE, &c, &there, err);
    redis_command_release(&c);
    return rc ? rc : there ? 0 : error_set(err, FAULT_MISSING, "there is no job %u", id);
}

static size_t same_set(const struct batch *b, size_t from)
{
    const struct batch_count *c = b->counts.data;
    size_t n = 1;
    while (from + n < b->counts.len && c[from + n].kind == c[from].kind &&
           (c[from + n].event == c[from].event || !strcmp(c[from + n].event, c[from].event)))
        n++;
    return n;
}

static int by_set(const void *a, const void *b)
{
    const struct batch_count *x = a, *y = b;
    int order = (int)x->kind - (int)y->kind;
    return order ? order : x->event == y->event ? 0 : strcmp(x->event, y->event);
}

static void add_counts(struct redis_command *c, const struct batch *b)
{
    size_t sets = 0;
    if (b->counts.len)
        qsort(b->counts.data, b->counts.len, sizeof *b->counts.data, by_set);
    for (size_t i = 0; i < b->counts.len; i += same_set(b, i))
        sets++;
    redis_number(c, (int64_t)sets);
    for (size_t i = 0, n; i < b->counts.len; i += n) {
        const struct batch_count *first = &b->counts.data[i];
        n = same_set(b, i);
        redis_format(c, "%u:%d:%s", store_day(b->time), (int)first->kind, first->event);
        redis_number(c, (int64_t)n);
        for (size_t k = i; k < i + n; k++) {
            const char *executable = b->counts.data[k].executable, *name = b->counts.data[k].name;
            size_t head = strlen(executable), tail = strlen(name);
            char *field = arena_alloc(&c->arena, head + tail + 24);
            int len = snprintf(field, 24, "%zu:", head);
            memcpy(field + len, executable, head);
            memcpy(field + len + head, name, tail);
            redis_bytes(c, field, (size_t)len + head + tail);
            redis_number(c, b->counts.data[k].value);
        }
    }
}

/* Parts of a result, each with a NUL behind it, which none of them can hold. */
static void add_bench(struct redis_command *c, const struct batch *b)
{
    redis_number(c, (int64_t)b->bench.len);
    for (size_t i = 0; i < b->bench.len; i++) {
        struct text t = TEXT_INIT;
        text_format(&t, "%llu", (unsigned long long)b->time);
        const char *parts[] = {b->key, b->host, b->bench.data[i].name, b->bench.data[i].json};
        for (size_t k = 0; k < 4; k++) {
            text_add_char(&t, 0);
            text_add(&t, parts[k]);
        }
        char *copy = arena_alloc(&c->arena, t.len + 1);
        memcpy(copy, t.data, t.len);
        redis_bytes(c, copy, t.len);
        text_release(&t);
    }
}

static void make_add(struct redis_command *c, const struct batch *b)
{
    redis_number(c, 1);
    redis_key(c, b->job, "job");
    redis_key(c, b->job, "%s", "");
    redis_word(c, b->key);
    redis_format(c, "%llu", (unsigned long long)(b->time / 1000000));
    redis_format(c, "%llu", (unsigned long long)b->time);
    redis_number(c, !batch_key_moved(b->key));
    redis_word(c, b->host);
    add_counts(c, b);
    redis_number(c, (int64_t)b->points.len);
    for (size_t i = 0; i < b->points.len; i++) {
        redis_word(c, b->points.data[i].event);
        redis_number(c, (int64_t)b->points.data[i].time);
        redis_number(c, b->points.data[i].value);
    }
    add_bench(c, b);
    redis_number(c, (int64_t)b->keys.len);
    for (size_t i = 0; i < b->keys.len; i++) {
        redis_word(c, b->keys.data[i].key);
        redis_number(c, (int64_t)(b->keys.data[i].time / 1000000));
    }
    redis_number(c, b->recording_name != NULL);
    if (b->recording_name) {
        redis_word(c, b->recording_name);
        redis_bytes(c, b->recording, b->recording_size);
    }
}

static int add(struct store *s, struct batch *const *batches, size_t count,
               struct store_outcome *outcomes, struct error *err)
{
    struct redis_net *l = REDIS_OF(s);
    struct redis_command c = {0};
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        struct store_outcome *o = &outcomes[i];
        long long answer = 0;
        char key[32];
        *o = (struct store_outcome){0};
        make_add(&c, batches[i]);
        o->rc = rc ? rc : run_script(l, batches[i]->job, ADD, &c, &answer, &o->error);
        redis_command_clear(&c);
        redis_job_key(batches[i]->job, key);
        if (!o->rc && answer < 0)
            o->rc = error_set(&o->error, FAULT_MISSING, "there is no job %u", batches[i]->job);
        else if (!o->rc)
            o->rc = redis_settle(l, key, &o->error);
        o->duplicate = !o->rc && answer == 0;
        if (o->rc == FAULT_SYSTEM && !rc) {
            rc = o->rc; /* the others would wait in vain; each may be sent again */
            *err = o->error;
        } else if (rc) {
            o->error = *err;
        }
    }
    redis_command_release(&c);
    return count == 1 || (rc && outcomes[0].rc == FAULT_SYSTEM) ? rc : 0;
}

#define OPS                                                                                        \
    .close = close_store, .ping = ping, .job_create = job_create, .job_get = redis_job_get,        \
    .job_list = redis_job_list, .job_remove = redis_job_remove, .add = add,                        \
    .counts = redis_counts, .events = redis_events, .curve = redis_curve, .bench = redis_bench,    \
    .recordings = redis_recordings, .recording = redis_recording, .keys = redis_keys,              \
    .retain = redis_retain

const struct store_ops store_redis = {.scheme = "redis://", .open = open_plain, OPS};
const struct store_ops store_rediss = {.scheme = "rediss://", .open = open_tls, OPS};
