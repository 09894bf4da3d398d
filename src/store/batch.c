/* Pushes as text and back; see batch.h. */
#include "store/batch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"

void batch_release(struct batch *b)
{
    vector_release(&b->counts);
    vector_release(&b->bench);
    vector_release(&b->points);
    vector_release(&b->keys);
    arena_release(&b->arena);
    *b = (struct batch){0};
}

bool batch_key_valid(const char *key)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    size_t len = strlen(key);
    return len && len <= BATCH_KEY_MAX && strspn(key, allowed) == len;
}

void batch_key_make(char key[BATCH_KEY_MAX + 1])
{
    uint8_t bytes[16];
    while (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        ; /* so few are only ever cut short by a signal */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
}

void batch_count(struct batch *b, enum count_kind kind, const char *event, const char *executable,
                 const char *name, int64_t value)
{
    *vector_push(&b->counts) = (struct batch_count){kind, arena_strdup(&b->arena, event),
                                                    arena_strdup(&b->arena, executable),
                                                    arena_strdup(&b->arena, name), value};
}

/* The text of a member, "" if it is missing and may be; NULL with a fault otherwise. */
static const char *member_text(struct batch *b, const json_t *object, const char *name, size_t max,
                               bool needed, struct error *err)
{
    const json_t *value = json_object_get(object, name);
    if (!value && !needed)
        return "";
    if (!json_is_string(value)) {
        error_set(err, FAULT_INPUT, "\"%s\" must be a text", name);
        return NULL;
    }
    size_t len = json_string_length(value);
    if (len > max || (needed && !len)) {
        error_set(err, len ? FAULT_LIMIT : FAULT_INPUT, "\"%s\" must have 1 to %zu bytes, not %zu",
                  name, max, len);
        return NULL;
    }
    if (strlen(json_string_value(value)) != len) {
        error_set(err, FAULT_INPUT, "\"%s\" holds a NUL character", name);
        return NULL;
    }
    return arena_strndup(&b->arena, json_string_value(value), len);
}

static int parse_value(const json_t *value, const char *event, int64_t *out, struct error *err)
{
    double v = json_is_number(value) ? json_number_value(value) : -1;
    if (!json_is_number(value) || !isfinite(v) || v < 0 || v > (double)BATCH_VALUE_MAX)
        return error_set(err, FAULT_INPUT, "the value of \"%s\" must be a number from 0 to 2^53",
                         event);
    *out = json_is_integer(value) ? json_integer_value(value) : llround(v);
    return 0;
}

static int parse_count(struct batch *b, const json_t *item, enum count_kind kind, struct error *err)
{
    const char *executable = member_text(b, item, "executable", BATCH_NAME_MAX, false, err);
    const char *name =
        executable ? member_text(b, item, kind == COUNT_STACK ? "stack" : "function",
                                 kind == COUNT_STACK ? BATCH_STACK_MAX : BATCH_NAME_MAX, true, err)
                   : NULL;
    if (!name)
        return err->fault;
    json_t *events = json_object_get(item, "events");
    if (!json_is_object(events))
        return error_set(err, FAULT_INPUT, "\"events\" must be an object of numbers");
    const char *event;
    json_t *value;
    json_object_foreach(events, event, value)
    {
        size_t len = strlen(event);
        int64_t v = 0;
        if (!len || len > BATCH_EVENT_MAX)
            return error_set(err, FAULT_LIMIT, "an event's name must have 1 to %d bytes",
                             BATCH_EVENT_MAX);
        int rc = parse_value(value, event, &v, err);
        if (rc)
            return rc;
        if (b->counts.len == BATCH_COUNTS_MAX)
            return error_set(err, FAULT_LIMIT, "more than %u values in one batch: send several",
                             BATCH_COUNTS_MAX);
        *vector_push(&b->counts) =
            (struct batch_count){kind, arena_strndup(&b->arena, event, len), executable, name, v};
    }
    return 0;
}

static int parse_bench(struct batch *b, const json_t *item, struct error *err)
{
    const char *name = member_text(b, item, "name", BATCH_NAME_MAX, true, err);
    if (!name)
        return err->fault;
    const json_t *run = json_object_get(item, "run");
    if (!json_is_object(run))
        return error_set(err, FAULT_INPUT, "\"run\" must be an object");
    if (b->bench.len == BATCH_BENCH_MAX)
        return error_set(err, FAULT_LIMIT, "more than %u results in one batch: send several",
                         BATCH_BENCH_MAX);
    char *json = json_dumps(run, JSON_COMPACT | JSON_PRESERVE_ORDER);
    size_t len = json ? strlen(json) : 0;
    int rc = 0;
    if (!len || len > BATCH_BENCH_SIZE)
        rc = error_set(err, FAULT_LIMIT, "a result has more than %d bytes", BATCH_BENCH_SIZE);
    else
        *vector_push(&b->bench) = (struct batch_bench){name, arena_strndup(&b->arena, json, len)};
    free(json);
    return rc;
}

static int parse_list(struct batch *b, const json_t *root, const char *name,
                      int (*each)(struct batch *b, const json_t *item, int kind, struct error *err),
                      int kind, struct error *err)
{
    const json_t *list = json_object_get(root, name);
    if (!list)
        return 0;
    if (!json_is_array(list))
        return error_set(err, FAULT_INPUT, "\"%s\" must be a list", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        int rc = each(b, json_array_get(list, i), kind, err);
        if (rc) {
            error_prefix(err, "%s[%zu]", name, i);
            return rc;
        }
    }
    return 0;
}

static int each_count(struct batch *b, const json_t *item, int kind, struct error *err)
{
    return parse_count(b, item, (enum count_kind)kind, err);
}

static int each_bench(struct batch *b, const json_t *item, int kind, struct error *err)
{
    (void)kind;
    return parse_bench(b, item, err);
}

/* The recording's bytes are what follows the line of JSON. */
static int parse_recording(struct batch *b, const json_t *root, const char *rest, size_t left,
                           struct error *err)
{
    const json_t *recording = json_object_get(root, "recording");
    if (!recording)
        return left ? error_set(err, FAULT_INPUT, "%zu bytes follow that nothing announces", left)
                    : 0;
    const char *name = member_text(b, recording, "name", BATCH_NAME_MAX, true, err);
    const json_t *size = json_object_get(recording, "size");
    if (!name)
        return err->fault;
    if (!json_is_integer(size) || (size_t)json_integer_value(size) != left || !left)
        return error_set(err, FAULT_INPUT, "the recording has %zu bytes, not what \"size\" says",
                         left);
    b->recording_name = name;
    b->recording = rest;
    b->recording_size = left;
    return 0;
}

int batch_parse(struct batch *b, const char *data, size_t len, struct error *err)
{
    json_error_t bad;
    json_t *root = json_loadb(data, len, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &bad);
    if (!root)
        return error_set(err, FAULT_INPUT, "the batch is no JSON: line %d, column %d: %s", bad.line,
                         bad.column, bad.text);
    size_t used = (size_t)bad.position;
    if (used < len && data[used] == '\r')
        used++;
    if (used < len && data[used] == '\n')
        used++;
    int rc = json_is_object(root) ? 0 : error_set(err, FAULT_INPUT, "the batch must be an object");
    if (!rc && !(b->key = member_text(b, root, "key", BATCH_KEY_MAX, true, err)))
        rc = err->fault;
    if (!rc && !batch_key_valid(b->key))
        rc = error_set(err, FAULT_INPUT, "\"key\" may have letters, digits and . _ : - only");
    if (!rc && !(b->host = member_text(b, root, "host", 255, false, err)))
        rc = err->fault;
    if (!rc)
        rc = parse_list(b, root, "counts", each_count, COUNT_NODE, err);
    if (!rc)
        rc = parse_list(b, root, "stacks", each_count, COUNT_STACK, err);
    if (!rc)
        rc = parse_list(b, root, "bench", each_bench, 0, err);
    if (!rc)
        rc = parse_recording(b, root, data + used, len - used, err);
    json_decref(root);
    return rc;
}

static void write_count(struct json *j, const struct batch_count *c, size_t count)
{
    json_open_object(j);
    json_put_string(j, "executable", c->executable);
    json_put_string(j, c->kind == COUNT_STACK ? "stack" : "function", c->name);
    json_key(j, "events");
    json_open_object(j);
    for (size_t i = 0; i < count; i++)
        json_put_int(j, c[i].event, c[i].value);
    json_end(j);
    json_end(j);
}

/* Values that follow each other with the same names share an object, as long as events differ. */
static size_t run_of(const struct batch_count *c, size_t left)
{
    size_t n = 1;
    for (; n < left && c[n].kind == c->kind && !strcmp(c[n].name, c->name) &&
           !strcmp(c[n].executable, c->executable);
         n++)
        for (size_t k = 0; k < n; k++)
            if (!strcmp(c[k].event, c[n].event))
                return n;
    return n;
}

static void write_counts(struct json *j, const struct batch *b, enum count_kind kind,
                         const char *name)
{
    json_key(j, name);
    json_open_array(j);
    for (size_t i = 0; i < b->counts.len;) {
        size_t n = run_of(&b->counts.data[i], b->counts.len - i);
        if (b->counts.data[i].kind == kind)
            write_count(j, &b->counts.data[i], n);
        i += n;
    }
    json_end(j);
}

void batch_write(const struct batch *b, struct text *out)
{
    struct json j;
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    json_put_string(&j, "key", b->key);
    if (b->host && *b->host)
        json_put_string(&j, "host", b->host);
    write_counts(&j, b, COUNT_NODE, "counts");
    write_counts(&j, b, COUNT_STACK, "stacks");
    json_key(&j, "bench");
    json_open_array(&j);
    for (size_t i = 0; i < b->bench.len; i++) {
        json_open_object(&j);
        json_put_string(&j, "name", b->bench.data[i].name);
        json_key(&j, "run");
        json_raw(&j, b->bench.data[i].json, strlen(b->bench.data[i].json));
        json_end(&j);
    }
    json_end(&j);
    if (b->recording_name) {
        json_key(&j, "recording");
        json_open_object(&j);
        json_put_string(&j, "name", b->recording_name);
        json_put_uint(&j, "size", b->recording_size);
        json_end(&j);
    }
    json_end(&j);
    json_finish(&j);
    text_add_len(out, j.out.data, j.out.len);
    text_add_char(out, '\n');
    json_release(&j);
}
