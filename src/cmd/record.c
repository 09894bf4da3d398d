/* Recording from the command line; see record.h. */
#include "cmd/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cmd/page.h"
#include "capture/rendezvous.h"
#include "cmd/summary.h"
#include "live/live.h"

/* "app-20260131-142501.sonde", from the last part of the command's name. */
static char *default_name(const char *command)
{
    struct text t = TEXT_INIT;
    const char *slash = strrchr(command, '/');
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    text_add_printable(&t, slash && slash[1] ? slash + 1 : command);
    for (size_t i = 0; i < t.len; i++)
        if (t.data[i] == '/')
            t.data[i] = '-';
    text_format(&t, "-%s.sonde", stamp);
    return text_take(&t);
}

static int take_event(void *context, const char *name, unsigned group, struct error *err)
{
    struct perf_options *p = context;
    (void)group; /* each is sampled by itself */
    if (p->events == PERF_EVENTS_MAX)
        return error_set(err, FAULT_USAGE, "more than %d events", PERF_EVENTS_MAX);
    int rc = event_parse(name, &p->event[p->events++], err);
    if (rc == FAULT_MISSING) /* nothing can be recorded without it: the command line is at fault */
        rc = err->fault = FAULT_USAGE;
    return rc;
}

static int parse_events(const struct option_list *list, struct perf_options *p, struct error *err)
{
    unsigned groups = 0;
    int rc = 0;
    for (size_t i = 0; i < list->len && !rc; i++)
        rc = event_split(list->data[i], take_event, p, &groups, err);
    if (!rc && !p->events)
        rc = take_event(p, "cpu", 0, err);
    return rc;
}

struct progress {
    bool shown;
    bool shared; /* the command prints on the same terminal: its prompts must not be wiped out */
};

/* One line that is written over and over; cleared before anything else is said. The cursor goes
 * back to its start, so that what a program prints takes its place. */
static void show_progress(void *context, const struct session_progress *p)
{
    struct progress *progress = context;
    if (progress->shared && p->phase == SESSION_RECORDING)
        return;
    struct text t = TEXT_INIT;
    text_add(&t, "\r\033[Ksonde: ");
    if (p->phase == SESSION_SYMBOLIZING) {
        text_add(&t, "finding names: ");
        text_add_count(&t, p->done);
        text_add(&t, " of ");
        text_add_count(&t, p->total);
    } else {
        text_add_duration(&t, p->elapsed);
        text_format(&t, ", %zu process%s, %zu thread%s, ", p->processes,
                    p->processes == 1 ? "" : "es", p->threads, p->threads == 1 ? "" : "s");
        text_add_count(&t, p->samples);
        text_add(&t, " samples");
        if (p->lost) {
            text_add(&t, ", lost ");
            text_add_count(&t, p->lost);
        }
    }
    text_add_char(&t, '\r');
    fputs(t.data, stderr);
    fflush(stderr);
    text_release(&t);
    progress->shown = true;
}

static void say_result(const char *output, const struct session_result *r)
{
    struct text t = TEXT_INIT;
    text_add(&t, "sonde: ");
    text_add_count(&t, r->samples);
    text_format(&t, " sample%s of %zu process%s and %zu thread%s in ", r->samples == 1 ? "" : "s",
                r->processes, r->processes == 1 ? "" : "es", r->threads,
                r->threads == 1 ? "" : "s");
    text_add_duration(&t, r->duration);
    text_add(&t, ", lost ");
    text_add_count(&t, r->lost);
    text_add(&t, "; the recording is ");
    text_add_printable(&t, output);
    fprintf(stderr, "%s\n", t.data);
    if (r->instead)
        fprintf(stderr, "sonde: %s; `sonde doctor` tells what would enable better\n", r->instead);
    text_release(&t);
}

/* The recording is there in any case: a page that cannot be written is told of, no more. */
static void write_page(const char *recording, const char *html, bool quiet)
{
    struct error err = {0};
    struct page_request request = {
        .recording = recording, .output = html, .load = {.hide_interpreter = true}};
    if (page_save(&request, &err))
        fprintf(stderr, "sonde: %s\n", err.text);
    else if (!quiet)
        fprintf(stderr, "sonde: the page is %s\n", html);
}

/* The live side of a recording, if one was asked for. */
struct looking {
    struct live_options options;
    struct live_process process;
    struct text control;
    bool on;
};

/* The address, and for who sits elsewhere how it is reached from there. */
static void say_address(const struct live_process *live, const char *bind)
{
    char host[256] = "";
    const char *port = strrchr(live->address.data, ':');
    int digits = port ? (int)strspn(port + 1, "0123456789") : 0;
    fprintf(stderr, "sonde: live at %s\n", live->address.data);
    if (bind || !digits || !getenv("SSH_CONNECTION") || gethostname(host, sizeof host - 1))
        return;
    fprintf(stderr, "sonde: from the machine that you sit at: ssh -L %.*s:127.0.0.1:%.*s %s\n",
            digits, port + 1, digits, port + 1, host);
}

static int start_looking(struct looking *k, const struct record_options *o, const char *output,
                         struct error *err)
{
    *k = (struct looking){.on = o->live || o->redis};
    text_init(&k->control);
    if (!k->on)
        return 0;
    rendezvous_path(getpid(), "control", &k->control);
    k->options = (struct live_options){.recording = output,
                                       .control = k->control.data,
                                       .serve = o->live,
                                       .bind = o->live_bind,
                                       .port = (uint16_t)o->live_port,
                                       .linger = o->live_linger,
                                       .redis = o->redis,
                                       .interval = o->interval,
                                       .limit = (unsigned)o->limit};
    int rc = live_start(&k->options, &k->process, err);
    k->on = rc == 0;
    if (!rc && o->live)
        say_address(&k->process, o->live_bind);
    return rc;
}

/* `sonde top` finds the page by this. */
static void looking_begun(void *context)
{
    struct looking *k = context;
    live_begun(&k->process);
    if (k->options.serve)
        rendezvous_put("live", k->process.address.data, NULL);
}

static void end_looking(struct looking *k, bool quiet)
{
    struct live_report report = {0};
    if (k->on)
        live_end(&k->process, &k->options, &report);
    if (k->on && k->options.redis && (!quiet || report.unsent)) {
        struct text t = TEXT_INIT;
        text_format(&t, "sonde: to Redis %llu messages were published, %llu could not be",
                    (unsigned long long)report.sent, (unsigned long long)report.unsent);
        if (report.unsent && report.error[0])
            text_format(&t, " (%s)", report.error);
        fprintf(stderr, "%s\n", t.data);
        text_release(&t);
    }
    text_release(&k->control);
}

int record(const struct record_options *o, struct session_options *session, const char *name,
           struct session_result *result, struct error *err)
{
    *result = (struct session_result){0};
    session->perf.rate = o->rate;
    session->budget = o->budget;
    if (o->budget > 0 && session->heap == HEAP_EXACT)
        session->heap = HEAP_SAMPLED; /* all that can be had more or less of */
    session->perf.wall = o->wall || o->waiting;
    session->gil = o->gil;
    session->waiting = o->waiting;
    session->no_native = !o->native;
    session->perf.no_kernel = !o->kernel;
    session->rss_rate = o->rss_rate;
    int rc = o->samples ? parse_events(&o->events, &session->perf, err) : 0;
    if (rc)
        return rc;
    struct progress progress = {.shared = session->launch && isatty(STDOUT_FILENO)};
    char *output = o->output ? memory_strdup(o->output) : default_name(name);
    session->output = output;
    session->replace = o->force;
    session->duration = o->duration;
    session->no_symbols = !o->symbols;
    session->debuginfod = o->debuginfod;
    session->controllable = true;
    if (!o->quiet && isatty(STDERR_FILENO)) {
        session->progress = show_progress;
        session->context = &progress;
    }
    struct looking looking;
    rc = start_looking(&looking, o, output, err);
    if (looking.on) {
        session->live = true;
        session->begun = looking_begun;
        session->begun_context = &looking;
    }
    if (!rc)
        rc = session_run(session, result, err);
    end_looking(&looking, o->quiet);
    if (progress.shown)
        fputs("\r\033[K", stderr);
    if (!rc && !o->quiet) {
        say_result(output, result);
        if (session->progress && result->samples)
            summary_print(output, STDERR_FILENO);
    }
    if (!rc && o->html)
        write_page(output, o->html, o->quiet);
    free(output);
    return rc;
}
