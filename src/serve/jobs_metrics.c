/* How the server is: for Prometheus, and for whoever asks whether it lives. */
#include <inttypes.h>

#include "base/clock.h"
#include "serve/jobs_internal.h"

static void metric(struct text *out, const char *name, const char *kind, const char *help,
                   uint64_t value)
{
    text_format(out, "# HELP sonde_%s %s\n# TYPE sonde_%s %s\nsonde_%s %" PRIu64 "\n", name, help,
                name, kind, name, value);
}

/* The counts of the loop's own are read while it goes on: a number may be one behind. */
static void add_http(struct text *out, const struct http_counts *c)
{
    metric(out, "http_requests_total", "counter", "Requests answered or refused.", c->requests);
    text_add(out, "# HELP sonde_http_responses_total Answers by class of status.\n"
                  "# TYPE sonde_http_responses_total counter\n");
    for (int i = 1; i < 6; i++)
        text_format(out, "sonde_http_responses_total{class=\"%dxx\"} %" PRIu64 "\n", i,
                    c->answered[i]);
    metric(out, "http_received_bytes_total", "counter", "Bytes received.", c->bytes_in);
    metric(out, "http_sent_bytes_total", "counter", "Bytes sent.", c->bytes_out);
    metric(out, "http_connections", "gauge", "Connections open now.", c->connections);
    metric(out, "http_refused_connections_total", "counter", "Connections over the limit.",
           c->refused_connections);
    metric(out, "viewers", "gauge", "Viewers of live streams.", c->viewers);
}

void jobs_metrics(struct http_request *q, void *context)
{
    struct jobs *j = context;
    struct ledger_state s;
    struct text out = TEXT_INIT;
    ledger_state(j->ledger, &s);
    metric(&out, "up_seconds", "counter", "Seconds since the start.",
           (clock_now() - j->started) / 1000000000);
    add_http(&out, http_server_counts(j->server));
    metric(&out, "batches_total", "counter", "Batches stored.", s.batches);
    metric(&out, "duplicate_batches_total", "counter", "Batches that had been stored before.",
           s.duplicates);
    metric(&out, "refused_batches_total", "counter", "Batches that could not be stored.",
           s.refused);
    metric(&out, "queued_batches_total", "counter", "Batches that went to the journal.", s.queued);
    metric(&out, "counts_total", "counter", "Values of nodes and stacks stored.", s.counts);
    metric(&out, "commits_total", "counter", "Commits; a commit has one batch or more.", s.commits);
    metric(&out, "journal_parts", "gauge", "Batches that wait in the journal.", s.parts);
    metric(&out, "journal_bytes", "gauge", "Bytes that wait in the journal.", s.bytes);
    metric(&out, "store_up", "gauge", "1 if the store can be written to.", !s.away);
    http_reply_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
    text_release(&out);
}

/* Says no more than it must: it is open to everyone. */
void jobs_health(struct http_request *q, void *context)
{
    struct jobs *j = context;
    struct ledger_state s;
    struct json json;
    ledger_state(j->ledger, &s);
    json_init(&json, NULL, NULL);
    json_open_object(&json);
    json_put_string(&json, "status", s.away ? "stale" : "ok");
    json_put_string(&json, "store", s.away ? "away" : "up");
    if (s.away)
        json_put_uint(&json, "seconds", (clock_now() - s.since) / 1000000000);
    json_put_uint(&json, "waiting", s.parts);
    json_end(&json);
    jobs_send(q, 200, &json);
}
