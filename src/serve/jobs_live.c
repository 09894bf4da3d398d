/*
 * What is added to jobs, as it is added: /api/jobs/live, a stream of events for whoever watches.
 * Batches are stored on the ledger's thread and told of on the loop's.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "serve/jobs_internal.h"

struct notice {
    struct jobs *jobs;
    struct text text;
};

/* On the loop. */
static void tell(void *context)
{
    struct notice *n = context;
    if (n->jobs->stream)
        stream_send(n->jobs->stream, "added", n->text.data, n->text.len);
    text_release(&n->text);
    free(n);
}

void jobs_added(void *context, struct batch *const *batches, size_t count)
{
    struct jobs *j = context;
    struct json json;
    json_init(&json, NULL, NULL);
    json_open_object(&json);
    json_key(&json, "batches");
    json_open_array(&json);
    for (size_t i = 0; i < count; i++) {
        json_open_object(&json);
        json_put_uint(&json, "job", batches[i]->job);
        json_put_string(&json, "host", batches[i]->host);
        json_put_uint(&json, "time", batches[i]->time);
        json_put_uint(&json, "counts", batches[i]->counts.len);
        json_put_uint(&json, "runs", batches[i]->bench.len);
        json_put_bool(&json, "recording", batches[i]->recording_name != NULL);
        json_end(&json);
    }
    json_end(&json);
    json_end(&json);
    json_finish(&json);
    struct notice *n = memory_alloc(sizeof *n);
    *n = (struct notice){j, json.out};
    http_server_post(j->server, tell, n);
}

void jobs_live(struct http_request *q, void *context)
{
    struct jobs *j = context;
    stream_join(j->stream, q);
}
