/* sonde job: create, list, show and remove the jobs of a server. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cmd/command.h"
#include "cmd/job_show.h"
#include "cmd/printing.h"
#include "store/store.h"

static const struct option options[] = {
    {"server", 0, OPTION_TEXT_AT(struct job_options, server), .placeholder = "URL",
     .default_text = "$SONDE_SERVER, or http://127.0.0.1:10000", .help = "The server of jobs."},
    {"id", 0, OPTION_UNSIGNED_AT(struct job_options, id), .placeholder = "N", .min = JOB_FIRST,
     .max = JOB_LAST, .default_text = "the next free one", .group = "create",
     .help = "Create the job with this number."},
    {"info", 0, OPTION_TEXT_AT(struct job_options, info), .placeholder = "TEXT", .group = "create",
     .help = "What the job is about."},
    {"profile", 0, OPTION_FLAG_AT(struct job_options, profile), .group = "show",
     .help = "Counts of each event by function."},
    {"bench", 0, OPTION_FLAG_AT(struct job_options, bench), .group = "show",
     .help = "Benchmark results, run by run."},
    {"recordings", 0, OPTION_FLAG_AT(struct job_options, recordings), .group = "show",
     .help = "The recordings that were kept."},
    {"recording", 0, OPTION_TEXT_AT(struct job_options, recording), .placeholder = "KEY",
     .group = "show", .help = "One of them: its bytes go to the file after -o."},
    {"event", 'e', OPTION_TEXT_AT(struct job_options, event), .placeholder = "NAME",
     .default_text = "all", .group = "show", .help = "This event alone."},
    {"top", 'n', OPTION_UNSIGNED_AT(struct job_options, top), .placeholder = "N", .max = 100000,
     .default_text = "20 on a terminal, all in a file", .group = "show",
     .help = "The N largest of an event."},
    {"format", 'f', OPTION_TEXT_AT(struct job_options, format), .placeholder = "FORMAT",
     .default_text = "by the ending of FILE, or for people", .group = "show",
     .help = "json, csv, or with --profile any that sonde export writes: pprof, folded, …"},
    {"output", 'o', OPTION_TEXT_AT(struct job_options, output), .placeholder = "FILE",
     .default_text = "standard output", .group = "show", .help = "Where to write."},
    {"force", 0, OPTION_FLAG_AT(struct job_options, force), .group = "show",
     .help = "Replace FILE if it is there already."},
    {"yes", 'y', OPTION_FLAG_AT(struct job_options, yes), .group = "remove", .help = "Do not ask."},
    {"json", 0, OPTION_FLAG_AT(struct job_options, json), .help = "As JSON."},
    {0}};

static int number_of(struct invocation *inv, unsigned *id)
{
    const char *word = inv->argc > 1 ? inv->argv[1] : "";
    char *end;
    unsigned long n = strtoul(word, &end, 10);
    if (inv->argc != 2 || !*word || *end || n < JOB_FIRST || n > JOB_LAST)
        return error_set(&inv->error, FAULT_USAGE,
                         "which job? Give its number, from %u to %u, after '%s'", JOB_FIRST,
                         JOB_LAST, inv->argv[0]);
    *id = (unsigned)n;
    return 0;
}

static int create(struct invocation *inv, struct remote *r)
{
    const struct job_options *o = inv->options;
    struct json j;
    struct text answer = TEXT_INIT;
    if (inv->argc != 1)
        return error_set(
            &inv->error, FAULT_USAGE,
            "unexpected '%s': the number goes after --id, the description after --info",
            inv->argv[1]);
    json_init(&j, NULL, NULL);
    json_open_object(&j);
    if (o->id)
        json_put_uint(&j, "id", o->id);
    json_put_string(&j, "info", o->info ? o->info : "");
    json_end(&j);
    json_finish(&j);
    int rc = remote_send(r, "POST", "/api/jobs", j.out.data, j.out.len, &answer, &inv->error);
    json_t *job = rc ? NULL : json_loadb(answer.data, answer.len, 0, NULL);
    if (!rc && o->json)
        fputs(answer.data, stdout);
    else if (!rc)
        printf("%lld\n", (long long)json_integer_value(json_object_get(job, "id")));
    json_decref(job);
    json_release(&j);
    text_release(&answer);
    return rc;
}

static void list_rows(struct view *v, const json_t *jobs)
{
    enum { ID, BATCHES, CREATED, UPDATED, INFO, COLUMNS };
    static const struct view_column columns[COLUMNS] = {
        {"id", "job", VIEW_NUMBER},
        {"batches", "pushes", VIEW_COUNT},
        {"created", "created", VIEW_DATE, 100},
        {"updated", "last push", VIEW_DATE},
        {"info", "description", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
    };
    struct view_section *s = view_add_table(v, "jobs", "Description", columns, COLUMNS);
    size_t i;
    json_t *job;
    json_array_foreach(jobs, i, job)
    {
        struct view_value *row = view_row(s, 0, VIEW_PLAIN);
        uint64_t batches = (uint64_t)json_integer_value(json_object_get(job, "batches"));
        row[ID] = view_number((uint64_t)json_integer_value(json_object_get(job, "id")));
        row[BATCHES] = view_number(batches);
        row[CREATED] = view_number((uint64_t)json_integer_value(json_object_get(job, "created")));
        if (batches)
            row[UPDATED] =
                view_number((uint64_t)json_integer_value(json_object_get(job, "updated")));
        row[INFO] = view_text(s, json_string_value(json_object_get(job, "info")));
    }
}

static int list(struct invocation *inv, struct remote *r)
{
    const struct job_options *o = inv->options;
    struct text answer = TEXT_INIT;
    struct view v;
    int rc = remote_get(r, "/api/jobs", &answer, &inv->error);
    if (rc || o->json) {
        fputs(answer.data, rc ? stderr : stdout);
        text_release(&answer);
        return rc;
    }
    json_t *root = json_loadb(answer.data, answer.len, 0, NULL);
    const json_t *jobs = json_object_get(root, "jobs");
    if (json_array_size(jobs)) {
        view_init(&v, "jobs", "", "jobs");
        list_rows(&v, jobs);
        rc = view_print(&v, false, o->format && !strcmp(o->format, "csv"), &inv->error);
        view_release(&v);
    } else {
        fprintf(stderr, "sonde job: %s has no jobs; 'sonde job create --info …' makes one\n",
                remote_url(r));
    }
    json_decref(root);
    text_release(&answer);
    return rc;
}

static bool sure(unsigned id)
{
    char answer[16] = "";
    fprintf(stderr, "Remove job %u with all its counts, results and recordings? [y/N] ", id);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int remove_job(struct invocation *inv, struct remote *r)
{
    const struct job_options *o = inv->options;
    unsigned id;
    char path[64];
    int rc = number_of(inv, &id);
    if (rc)
        return rc;
    if (!o->yes && !isatty(STDIN_FILENO))
        return error_set(&inv->error, FAULT_USAGE, "there is nobody to ask: say --yes to remove");
    if (!o->yes && !sure(id))
        return error_set(&inv->error, FAULT_USAGE, "job %u is still there", id);
    snprintf(path, sizeof path, "/api/jobs/%u", id);
    return remote_send(r, "DELETE", path, NULL, 0, NULL, &inv->error);
}

static int show(struct invocation *inv, struct remote *r)
{
    unsigned id;
    int rc = number_of(inv, &id);
    return rc ? rc : job_show(inv, r, id);
}

static void say_stale(const struct remote *r)
{
    uint64_t seconds;
    if (remote_was_stale(r, &seconds))
        fprintf(stderr,
                "sonde job: the store of %s is away: this is what it held %llu seconds ago\n",
                remote_url(r), (unsigned long long)seconds);
}

static int run(struct invocation *inv)
{
    static const struct {
        const char *name;
        int (*run)(struct invocation *inv, struct remote *r);
    } verbs[] = {{"create", create}, {"list", list}, {"show", show}, {"remove", remove_job}};
    const struct job_options *o = inv->options;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct remote *r;
        if (strcmp(inv->argv[0], verbs[i].name) != 0)
            continue;
        int rc = remote_open(o->server, &r, &inv->error);
        if (rc)
            return rc;
        rc = verbs[i].run(inv, r);
        say_stale(r);
        remote_free(r);
        return rc;
    }
    return error_set(&inv->error, FAULT_USAGE, "'%s' is none of create, list, show and remove",
                     inv->argv[0]);
}

static const struct command_example examples[] = {
    {"sonde job create --id 2001 --info 'parser with the new table'", "a job by hand"},
    {"sonde run --to http://prof:10000 --job 2001 -- ./app", "add a run's profile to it"},
    {"sonde job list", "every job of the server"},
    {"sonde job show 2001 --profile -o counts.csv", "its counts, into a file"},
    {"sonde job show 2001 --bench --format json", "its benchmark results"},
    {"sonde job remove 2001", "away with it"},
    {0}};

static const char *const see_also[] = {"serve", "push", "run", NULL};

const struct command command_job = {
    .name = "job",
    .summary = "Create, list, show and remove jobs of a server",
    .usage = "create|list|show N|remove N [OPTION]...",
    .description =
        "A job gathers what many machines and runs add to it: for each function of each executable "
        "the counts of each event, benchmark results, and recordings. It has a number from 2001 to "
        "9999 and a description.\n\n"
        "'create' prints the number. 'show' prints the job and its largest functions; with "
        "--profile "
        "or --bench all of it, for people, as JSON, CSV or another tool's file.\n\n"
        "A server that wants a token gets that of $SONDE_TOKEN; $SONDE_CA names a file of "
        "certificates to trust, for one whose own nobody else vouches for.",
    .options = options,
    .options_size = sizeof(struct job_options),
    .operands_min = 1,
    .operands_max = 2,
    .operand = "create|list|show|remove",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
