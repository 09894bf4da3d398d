/*
 * /debug/pprof/: where scrapers of pprof look. Without ?seconds= a profile is all that was added to
 * the job so far; with it, what is added in the time that follows. Waiting for that takes no
 * thread: the request is held, and a timer of the loop comes back to it.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/jobs_export.h"
#include "serve/jobs_internal.h"

#define SECONDS_MAX 300u
#define WAITING_MAX 64u /* scrapers that wait at a time */

struct scrape {
    struct scrape *next;
    struct http_request *request;
    struct jobs *jobs;
    struct store_query query;
    unsigned seconds;
    struct jobs_counted before;
    struct event *timer;
    bool failed;  /* and answered */
    bool waiting; /* for its timer */
};

static const struct {
    const char *kind, *event;
} kinds[] = {
    {"profile", "cpu"},
    {"heap", "heap:live"},
    {"allocs", "heap:allocated"},
};

void jobs_pprof_index(struct http_request *q, void *context)
{
    (void)context;
    static const char text[] = "/debug/pprof/profile?job=N  CPU time of a job, as pprof\n"
                               "/debug/pprof/heap?job=N     what is allocated\n"
                               "/debug/pprof/allocs?job=N   what was allocated\n"
                               "&event=NAME                 any other event\n"
                               "&seconds=N                  what comes in the next N seconds\n";
    http_reply_static(q, 200, "text/plain; charset=utf-8", text, sizeof text - 1);
}

static void scrape_free(struct scrape *c)
{
    struct scrape **at = &c->jobs->scrapes;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->jobs->scrape_count--;
    if (c->timer)
        event_free(c->timer);
    jobs_counted_release(&c->before);
    free(c);
}

static void finish(void *context)
{
    struct scrape *c = context;
    struct http_request *q = c->request;
    scrape_free(c);
    http_done(q);
}

static void export(void *context)
{
    struct scrape *c = context;
    jobs_export_answer(c->request, c->jobs, &c->query, "pprof", c->seconds ? &c->before : NULL);
}

/* On the pool, then the answer from the loop. */
static void start(struct scrape *c, void (*work)(void *context), void (*done)(void *context))
{
    struct error err = {0};
    if (http_server_work(http_server_of(c->request), work, done, c, &err) == 0)
        return;
    http_reply_header(c->request, "Retry-After", "1");
    http_reply_error(c->request, 503, "%s", err.text);
    finish(c);
}

static void time_is_up(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    ((struct scrape *)context)->waiting = false;
    start(context, export, finish);
}

static void count(void *context)
{
    struct scrape *c = context;
    struct error err = {0};
    struct store *s = jobs_store(c->request, c->jobs);
    c->failed = !s;
    if (!s)
        return;
    int rc = jobs_count(&c->before, s, &c->query, &err);
    c->failed = rc != 0;
    jobs_close(c->request, c->jobs, s, rc, &err);
}

static void wait_for_more(void *context)
{
    struct scrape *c = context;
    struct timeval time = {.tv_sec = c->seconds};
    if (c->failed || c->jobs->stopping) {
        finish(c);
        return;
    }
    c->timer = evtimer_new(c->jobs->base, time_is_up, c);
    evtimer_add(c->timer, &time);
    c->waiting = true;
}

static bool parse(struct http_request *q, struct store_query *query, uint64_t *seconds)
{
    uint64_t job;
    const char *kind = http_param(q, "kind"), *event = http_query(q, "event");
    if (!jobs_number(q, "job", JOB_LAST, 0, &job) ||
        !jobs_number(q, "seconds", SECONDS_MAX, 0, seconds))
        return false;
    if (job < JOB_FIRST) {
        http_reply_error(q, 400, "which job? Say ?job=%u", JOB_FIRST);
        return false;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind)) {
            *query =
                (struct store_query){.job = (uint32_t)job, .event = event ? event : kinds[i].event};
            return true;
        }
    http_reply_error(q, 404, "there is no profile '%s': there are profile, heap and allocs", kind);
    return false;
}

void jobs_pprof(struct http_request *q, void *context)
{
    struct jobs *j = context;
    struct store_query query;
    uint64_t seconds;
    if (!parse(q, &query, &seconds))
        return;
    if (j->scrape_count >= WAITING_MAX) {
        http_reply_header(q, "Retry-After", "10");
        http_reply_error(q, 429, "%u scrapers wait already: try again later", WAITING_MAX);
        return;
    }
    struct scrape *c = memory_alloc(sizeof *c);
    c->request = q;
    c->jobs = j;
    c->query = query;
    c->seconds = (unsigned)seconds;
    c->before.max = j->rows_max;
    text_init(&c->before.scratch);
    c->next = j->scrapes;
    j->scrapes = c;
    j->scrape_count++;
    http_hold(q);
    start(c, seconds ? count : export, seconds ? wait_for_more : finish);
}

void jobs_stop(struct jobs *j)
{
    ledger_listen(j->ledger, NULL, NULL);
    stream_free(j->stream);
    j->stream = NULL;
    j->stopping = true;
    for (struct scrape *c = j->scrapes, *next; c; c = next) {
        next = c->next;
        if (c->waiting)
            finish(c);
    }
}
