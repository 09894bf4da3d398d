/* sonde serve: the server of jobs, its tokens, and moving from one store to another. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "serve/access.h"
#include "serve/access_log.h"
#include "serve/jobs.h"
#include "serve/shelf.h"

#define ANSWERS_MAX                                                                                \
    ((size_t)32 << 20) /* bytes of answers that are kept for when the store is away */

struct serve_options {
    const char *bind, *store, *data, *tls_cert, *tls_key, *log, *role, *name;
    struct option_list hosts;
    uint64_t port, body_max, inflated_max, rate, connections, threads, jobs_max, events_max,
        rows_max, query_time, keep, keep_size, journal_max;
    bool open, quiet;
};

static const struct option options[] = {
    {"bind", 0, OPTION_TEXT_AT(struct serve_options, bind), .placeholder = "ADDRESS",
     .help = "Listen on this address. Any but a loopback one needs tokens and TLS, or --open."},
    {"port", 0, OPTION_UNSIGNED_AT(struct serve_options, port), .placeholder = "PORT", .max = 65535,
     .help = "Listen on this port; 0 takes a free one."},
    {"store", 0, OPTION_TEXT_AT(struct serve_options, store), .placeholder = "URL",
     .default_text = "sqlite: in the data folder",
     .help = "Where jobs are kept: sqlite:PATH, redis://HOST, rediss://HOST (TLS; a cluster is "
             "noticed) or clickhouse://HOST."},
    {"data", 0, OPTION_TEXT_AT(struct serve_options, data), .placeholder = "DIR",
     .default_text = "$XDG_DATA_HOME/sonde",
     .help = "The folder of tokens, journal and the store that needs no set-up."},
    {"tls-cert", 0, OPTION_TEXT_AT(struct serve_options, tls_cert), .placeholder = "FILE",
     .group = "Access", .help = "Certificate chain (PEM): speak TLS."},
    {"tls-key", 0, OPTION_TEXT_AT(struct serve_options, tls_key), .placeholder = "FILE",
     .group = "Access", .help = "Its private key (PEM)."},
    {"host", 0, OPTION_LIST_AT(struct serve_options, hosts), .placeholder = "NAME",
     .group = "Access",
     .help = "A name by which clients call this server; others are refused, but for addresses and "
             "localhost."},
    {"open", 0, OPTION_FLAG_AT(struct serve_options, open), .group = "Access",
     .help = "Listen beyond loopback without tokens or TLS all the same."},
    {"role", 0, OPTION_TEXT_AT(struct serve_options, role), .placeholder = "ROLE",
     .group = "Access", .help = "With 'token add': read, write or admin."},
    {"name", 0, OPTION_TEXT_AT(struct serve_options, name), .placeholder = "NAME",
     .group = "Access", .default_text = "the role", .help = "With 'token add': what to call it."},
    {"keep", 0, OPTION_DURATION_AT(struct serve_options, keep), .placeholder = "TIME",
     .group = "Retention", .default_text = "for ever",
     .help = "Let go of what is older, for example 30d. Curves become coarser with age in any "
             "case: by minute for a day, by hour for a month, then by day."},
    {"keep-size", 0, OPTION_SIZE_AT(struct serve_options, keep_size), .placeholder = "BYTES",
     .group = "Retention", .default_text = "no bound",
     .help = "Let go of the oldest recordings when all together are larger."},
    {"body-max", 0, OPTION_SIZE_AT(struct serve_options, body_max), .placeholder = "BYTES",
     .min = 1024, .max = 1ull << 32, .group = "Limits", .help = "Largest request, as it is sent."},
    {"inflated-max", 0, OPTION_SIZE_AT(struct serve_options, inflated_max), .placeholder = "BYTES",
     .min = 1024, .max = 1ull << 32, .group = "Limits",
     .help = "Largest request after decompression."},
    {"rate", 0, OPTION_UNSIGNED_AT(struct serve_options, rate), .placeholder = "N", .min = 1,
     .max = 1000000, .group = "Limits", .help = "Requests a second from one address."},
    {"connections", 0, OPTION_UNSIGNED_AT(struct serve_options, connections), .placeholder = "N",
     .min = 1, .max = 1000000, .group = "Limits", .help = "Connections at a time."},
    {"threads", 0, OPTION_UNSIGNED_AT(struct serve_options, threads), .placeholder = "N", .min = 1,
     .max = 1024, .group = "Limits", .help = "Requests that are worked on at a time."},
    {"jobs-max", 0, OPTION_UNSIGNED_AT(struct serve_options, jobs_max), .placeholder = "N",
     .min = 1, .max = 7999, .group = "Limits", .help = "Jobs."},
    {"events-max", 0, OPTION_UNSIGNED_AT(struct serve_options, events_max), .placeholder = "N",
     .min = 1, .max = 100000, .group = "Limits", .help = "Different events of one job."},
    {"rows-max", 0, OPTION_UNSIGNED_AT(struct serve_options, rows_max), .placeholder = "N",
     .suffix = true, .min = 1, .max = 1ull << 32, .group = "Limits",
     .help = "Values in one answer; more is refused, with what to ask for instead."},
    {"query-time", 0, OPTION_DURATION_AT(struct serve_options, query_time), .placeholder = "TIME",
     .min = 1000000, .group = "Limits",
     .help = "What takes longer to find is given up; so is whatever nobody waits for any more."},
    {"journal-max", 0, OPTION_SIZE_AT(struct serve_options, journal_max), .placeholder = "BYTES",
     .group = "Limits", .help = "What may wait on disk while the store is away."},
    {"log", 0, OPTION_TEXT_AT(struct serve_options, log), .placeholder = "FILE",
     .default_text = "standard error",
     .help = "Append a line of JSON for each request and each thing of note."},
    {"quiet", 'q', OPTION_FLAG_AT(struct serve_options, quiet), .help = "No log."},
    {0}};

static const struct serve_options defaults = {.bind = "127.0.0.1",
                                              .port = 10000,
                                              .body_max = 64 << 20,
                                              .inflated_max = 48 << 20,
                                              .rate = 2000,
                                              .connections = 4096,
                                              .threads = 32,
                                              .jobs_max = 7999,
                                              .events_max = 256,
                                              .rows_max = 1000000,
                                              .query_time = 30000000000,
                                              .journal_max = 1 << 30};

static char *data_folder(const char *named)
{
    struct text path = TEXT_INIT;
    const char *folder = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
    if (named)
        text_add(&path, named);
    else if (folder && folder[0] == '/')
        text_format(&path, "%s/sonde", folder);
    else
        text_format(&path, "%s/.local/share/sonde", home && home[0] == '/' ? home : "");
    return text_take(&path);
}

static char *in_folder(const char *folder, const char *name)
{
    struct text path = TEXT_INIT;
    text_format(&path, "%s/%s", folder, name);
    return text_take(&path);
}

static int need(const struct invocation *inv, int operands, const char *usage)
{
    return inv->argc == operands ? 0
                                 : error_set((struct error *)&inv->error, FAULT_USAGE,
                                             "usage: sonde serve %s", usage);
}

static int token_add(struct invocation *inv, const char *path)
{
    const struct serve_options *o = inv->options;
    enum http_role role = o->role ? access_role(o->role) : HTTP_ROLE_NONE;
    char token[TOKEN_TEXT];
    if (!role)
        return error_set(&inv->error, FAULT_USAGE, "which role? --role read, write or admin");
    int rc = access_add(path, o->name ? o->name : o->role, role, token, &inv->error);
    if (!rc)
        printf("%s\n", token);
    if (!rc && isatty(STDERR_FILENO))
        fprintf(stderr, "sonde serve: this is shown once; clients take it from SONDE_TOKEN\n");
    return rc;
}

static int token_list(struct invocation *inv, const char *path)
{
    struct text out = TEXT_INIT;
    int rc = access_list(path, &out, &inv->error);
    fputs(out.data, stdout);
    text_release(&out);
    return rc;
}

static int manage_tokens(struct invocation *inv, const char *folder)
{
    static const char usage[] = "token add --role read|write|admin [--name NAME] | token list | "
                                "token remove NAME";
    const char *verb = inv->argc > 1 ? inv->argv[1] : "";
    char *path = in_folder(folder, "tokens");
    int rc = io_make_folders(folder, &inv->error);
    if (!rc && !strcmp(verb, "remove") && !(rc = need(inv, 3, usage)))
        rc = access_remove(path, inv->argv[2], &inv->error);
    else if (!rc && !(rc = need(inv, 2, usage)))
        rc = !strcmp(verb, "add") ? token_add(inv, path)
             : !strcmp(verb, "list")
                 ? token_list(inv, path)
                 : error_set(&inv->error, FAULT_USAGE, "usage: sonde serve %s", usage);
    free(path);
    return rc;
}

/* To open a file that is not there would make one. */
static int check_source(const char *url, struct error *err)
{
    const char *path = text_starts(url, "sqlite:") ? url + strlen("sqlite:") : NULL;
    return path && access(path, F_OK) < 0
               ? error_errno(err, FAULT_MISSING, "there is no store %s", path)
               : 0;
}

static int migrate(struct invocation *inv)
{
    struct store *from = NULL, *to = NULL;
    struct store_migration done = {0};
    int rc = need(inv, 3, "migrate FROM TO");
    if (!rc)
        rc = check_source(inv->argv[1], &inv->error);
    if (!rc)
        rc = store_open(inv->argv[1], &from, &inv->error);
    if (!rc)
        rc = store_open(inv->argv[2], &to, &inv->error);
    if (!rc)
        rc = store_migrate(from, to, &done, &inv->error);
    store_close(from);
    store_close(to);
    struct text t = TEXT_INIT;
    text_format(&t, "moved %llu jobs with ", (unsigned long long)done.jobs);
    text_add_count(&t, done.counts);
    text_add(&t, " counts, ");
    text_add_count(&t, done.bench);
    text_add(&t, " benchmark results and ");
    text_add_count(&t, done.recordings);
    text_add(&t, " recordings");
    if (done.there)
        text_format(&t, "; %llu had been moved before", (unsigned long long)done.there);
    if (!rc)
        printf("%s\n", t.data);
    text_release(&t);
    return rc;
}

/* The running server. */
struct serving {
    int log; /* descriptor, -1 for none */
    struct http_server *server;
    struct jobs jobs;
    struct shelf *shelf;
    struct access *access;
    bool guarded; /* there were tokens once */
    struct event *signals[2];
    const char **hosts; /* as long as the server lives */
    struct text store;  /* URL */
};

static void say(void *context, const char *level, const char *text)
{
    struct serving *s = context;
    struct text line = TEXT_INIT;
    if (s->log < 0)
        return;
    access_log_message(clock_wall(), level, text, &line);
    if (io_write(s->log, line.data, line.len) < 0)
        s->log = -1; /* nobody reads it any more */
    text_release(&line);
}

static void log_request(void *context, const struct http_entry *e)
{
    struct serving *s = context;
    if (s->log >= 0)
        access_log_to_fd(&s->log, e);
}

/* From the first token on, also if it is made while the server runs, nobody comes in without. */
static enum http_role check(void *context, const char *token)
{
    struct serving *s = context;
    s->guarded = s->guarded || access_any(s->access);
    if (!s->guarded)
        return HTTP_ROLE_ADMIN;
    return token ? access_check(s->access, token) : HTTP_ROLE_NONE;
}

static bool is_loopback(const char *address)
{
    return text_starts(address, "127.") || !strcmp(address, "::1") || !strcmp(address, "localhost");
}

static int check_exposure(struct serving *s, const struct serve_options *o, struct error *err)
{
    if (is_loopback(o->bind) || o->open)
        return 0;
    if (!access_any(s->access))
        return error_set(err, FAULT_USAGE,
                         "%s is not a loopback address and there are no tokens: make one with "
                         "'sonde serve token add --role write', or say --open",
                         o->bind);
    if (!o->tls_cert)
        return error_set(
            err, FAULT_USAGE,
            "%s is not a loopback address: give --tls-cert and --tls-key, or say --open", o->bind);
    return 0;
}

static int open_log(struct serving *s, const struct serve_options *o, struct error *err)
{
    s->log = o->quiet ? -1 : STDERR_FILENO;
    if (!o->log)
        return 0;
    s->log = open(o->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    return s->log < 0 ? error_errno(err, FAULT_SYSTEM, "cannot open the log %s", o->log) : 0;
}

static int start_ledger(struct serving *s, const struct serve_options *o, const char *folder,
                        struct error *err)
{
    char *journal = in_folder(folder, "journal"), *file = in_folder(folder, "jobs.db");
    if (o->store)
        text_add(&s->store, o->store);
    else
        text_format(&s->store, "sqlite:%s", file);
    struct ledger_options how = {.store = s->store.data,
                                 .journal = journal,
                                 .journal_max = o->journal_max,
                                 .keep = o->keep,
                                 .max_bytes = o->keep_size,
                                 .events_max = (unsigned)o->events_max,
                                 .jobs_max = (unsigned)o->jobs_max,
                                 .log = say,
                                 .context = s};
    int rc = ledger_new(&how, &s->jobs.ledger, err);
    free(journal);
    free(file);
    return rc;
}

static int start_server(struct serving *s, const struct serve_options *o, struct event_base *base,
                        struct error *err)
{
    s->hosts = memory_array(o->hosts.len + 1, sizeof *s->hosts);
    for (size_t i = 0; i < o->hosts.len; i++)
        s->hosts[i] = o->hosts.data[i];
    struct http_options how = {.bind = o->bind,
                               .port = (uint16_t)o->port,
                               .tls_cert = o->tls_cert,
                               .tls_key = o->tls_key,
                               .hosts = s->hosts,
                               .body_max = o->body_max,
                               .inflated_max = o->inflated_max,
                               .connections_max = (unsigned)o->connections,
                               .rate = (unsigned)o->rate,
                               .threads = (unsigned)o->threads,
                               .check = check,
                               .log = log_request,
                               .context = s};
    int rc = http_server_new(&how, base, &s->server, err);
    if (rc)
        return rc;
    s->jobs.server = s->server;
    s->jobs.recall = recall_new(ANSWERS_MAX);
    s->jobs.applications = applications_new();
    s->jobs.base = base;
    s->jobs.stream = stream_new(s->server, &(struct stream_options){.plain = true});
    ledger_listen(s->jobs.ledger, jobs_added, &s->jobs);
    s->jobs.rows_max = o->rows_max;
    s->jobs.query_time = o->query_time;
    s->jobs.started = clock_now();
    http_server_routes(s->server, jobs_routes, jobs_route_count(), &s->jobs);
    s->shelf = shelf_new(&s->jobs);
    http_server_routes(s->server, shelf_routes, shelf_route_count(), s->shelf);
    return 0;
}

static void stop(evutil_socket_t number, short what, void *context)
{
    struct serving *s = context;
    (void)number;
    (void)what;
    http_server_stop(s->server, 5000);
}

static void announce(const struct serving *s)
{
    struct text t = TEXT_INIT;
    http_server_address(s->server, &t);
    text_add(&t, ", store ");
    store_url_safe(s->store.data, &t);
    printf("sonde serve: %s\n", t.data);
    fflush(stdout);
    text_release(&t);
}

static int run_server(struct serving *s, const struct serve_options *o, struct error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct event_base *base = event_base_new();
    int rc = start_server(s, o, base, err);
    if (!rc) {
        for (int i = 0; i < 2; i++) {
            s->signals[i] = evsignal_new(base, numbers[i], stop, s);
            event_add(s->signals[i], NULL);
        }
        announce(s);
        event_base_dispatch(base);
        for (int i = 0; i < 2; i++)
            event_free(s->signals[i]);
    }
    jobs_stop(&s->jobs);
    http_server_free(s->server);
    event_base_free(base);
    return rc;
}

static int serve(struct invocation *inv, const char *folder)
{
    const struct serve_options *o = inv->options;
    struct serving s = {.log = -1, .store = TEXT_INIT};
    char *tokens = in_folder(folder, "tokens");
    int rc = io_make_folders(folder, &inv->error);
    s.access = access_new(tokens);
    if (!rc)
        rc = check_exposure(&s, o, &inv->error);
    if (!rc)
        rc = open_log(&s, o, &inv->error);
    if (!rc)
        rc = start_ledger(&s, o, folder, &inv->error);
    if (!rc)
        rc = run_server(&s, o, &inv->error);
    shelf_free(s.shelf);
    ledger_free(s.jobs.ledger);
    recall_free(s.jobs.recall);
    applications_free(s.jobs.applications);
    text_release(&s.store);
    free(s.hosts);
    access_free(s.access);
    free(tokens);
    if (o->log && s.log >= 0)
        close(s.log);
    return rc;
}

static int run(struct invocation *inv)
{
    const struct serve_options *o = inv->options;
    const char *word = inv->argc ? inv->argv[0] : "";
    char *folder = data_folder(o->data);
    int rc = !inv->argc                 ? serve(inv, folder)
             : !strcmp(word, "token")   ? manage_tokens(inv, folder)
             : !strcmp(word, "migrate") ? migrate(inv)
                                        : error_set(&inv->error, FAULT_USAGE,
                                                    "'%s' is neither 'token' nor 'migrate'", word);
    free(folder);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde serve", "jobs of this machine, at http://127.0.0.1:10000"},
    {"sonde serve --store redis://10.0.0.5 --keep 30d", "jobs in Redis, for thirty days"},
    {"sonde serve token add --role write --name ci", "let a build machine push"},
    {"sonde serve --bind 0.0.0.0 --tls-cert s.crt --tls-key s.key --host prof",
     "for other machines"},
    {"sonde serve migrate sqlite:jobs.db clickhouse://10.0.0.7", "move to a larger store"},
    {0}};

static const char *const see_also[] = {"job", "push", "run", NULL};

const struct command command_serve = {
    .name = "serve",
    .summary = "Keep and show the jobs of many machines",
    .usage = "[OPTION]... [token add|list|remove | migrate FROM TO]",
    .description =
        "Runs a server that keeps jobs: counts of events by function, benchmark results and "
        "recordings, which any number of machines add at once with sonde run --to, sonde push and "
        "sonde bench, or through its HTTP API. What it has acknowledged is on disk, and counts "
        "once however often it is sent. Without options it listens on this machine alone and keeps "
        "all in one file.\n\n"
        "'token add' makes a token and prints it once; as soon as there is one, every request "
        "needs one. 'migrate' copies every job of one store into another, once each: stop the "
        "server of the old one first, since what it takes in afterwards stays behind.",
    .options = options,
    .options_size = sizeof(struct serve_options),
    .defaults = &defaults,
    .operands_max = 3,
    .operand = "token|migrate",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
