/* What clients add to a job: batches, and whole profiles of any kind that sonde reads. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "serve/jobs_internal.h"
#include "serve/reading.h"

#define LABEL_MAX 255

void jobs_add(struct http_request *q, struct jobs *j, struct batch *b)
{
    struct ledger_answer a = {0};
    struct json json;
    if (ledger_check_events(j->ledger, b, &a.error)) {
        http_reply_header(q, "Retry-After", "3600");
        http_reply_error(q, 429, "%s", a.error.text);
        batch_release(b);
        return;
    }
    ledger_add(j->ledger, b, &a);
    if (a.busy) {
        http_reply_header(q, "Retry-After", "1");
        http_reply_error(q, 429, "%s: try again in a second", a.error.text);
    } else if (a.rc) {
        jobs_refuse(q, &a.error);
    } else {
        json_init(&json, NULL, NULL);
        json_open_object(&json);
        json_put_string(&json, "key", b->key);
        json_put_bool(&json, "duplicate", a.duplicate);
        json_put_bool(&json, "queued", a.queued);
        json_put_uint(&json, "counts", b->counts.len);
        json_end(&json);
        jobs_send(q, a.queued ? 202 : a.duplicate ? 200 : 201, &json);
    }
    batch_release(b);
}

void jobs_push(struct http_request *q, void *context)
{
    uint32_t id;
    size_t len;
    struct batch b = {0};
    struct error err = {0};
    if (!jobs_id(q, &id))
        return;
    const char *body = http_body(q, &len);
    if (batch_parse(&b, body, len, &err)) {
        http_reply_error(q, err.fault == FAULT_LIMIT ? 413 : 400, "%s", err.text);
        batch_release(&b);
        return;
    }
    b.job = id;
    jobs_add(q, context, &b);
}

/* The key that the client gave, or one made of what it sent, so that sending it again is safe. */
static int take_key(struct http_request *q, struct batch *b)
{
    const char *key = http_query(q, "key");
    if (!key)
        key = http_header(q, "idempotency-key");
    if (key && !batch_key_valid(key)) {
        http_reply_error(q, 400, "a key has 1 to %d letters, digits and . _ : -", BATCH_KEY_MAX);
        return -1;
    }
    if (key) {
        b->key = arena_strdup(&b->arena, key);
        return 0;
    }
    size_t len;
    const char *body = http_body(q, &len);
    b->key = reading_key(&b->arena, http_path(q), http_peer(q), body, len);
    return 0;
}

static char *take_label(struct batch *b, const char *text, const char *otherwise)
{
    text = text && *text ? text : otherwise;
    return arena_strndup(&b->arena, text, strnlen(text, LABEL_MAX));
}

void jobs_push_profile(struct http_request *q, void *context)
{
    uint32_t id;
    size_t len;
    uint64_t keep;
    struct batch b = {0};
    struct error err = {0};
    if (!jobs_id(q, &id) || !jobs_number(q, "keep", 1, 0, &keep) || take_key(q, &b))
        return;
    const char *body = http_body(q, &len);
    b.job = id;
    b.host = take_label(&b, http_query(q, "host"), "");
    int rc = reading_batch(&b, NULL, body, len, &err);
    if (rc) {
        http_reply_error(q, rc == FAULT_LIMIT ? 413 : 400, "%s", err.text);
        batch_release(&b);
        return;
    }
    if (keep) {
        b.recording_name = take_label(&b, http_query(q, "name"), "profile");
        b.recording = body;
        b.recording_size = len;
    }
    jobs_add(q, context, &b);
}
