/* sonde bench: how long a program takes, and whether another takes longer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/benchmark.h"
#include "base/io.h"
#include "cmd/bench_job.h"
#include "cmd/bench_runs.h"
#include "cmd/command.h"
#include "cmd/printing.h"
#include "render/markdown.h"
#include "store/store.h"

struct bench_options {
    struct option_list events;
    uint64_t runs, warmup, rate;
    uint64_t job;
    const char *prepare, *to;
    bool compare, functions, show_output, ignore_failure, json, csv, markdown, quiet;
    double fail_above;
};

#define AT(kind, field) OPTION_##kind##_AT(struct bench_options, field)

static const struct option options[] = {
    {"compare", 0, AT(FLAG, compare),
     .help = "Each operand is a variant, as NAME=COMMAND; they run in turns, and every later one "
             "is compared with the first."},
    {"runs", 'n', AT(UNSIGNED, runs), .placeholder = "N", .min = 1, .max = 100000,
     .help = "Runs of each command."},
    {"warmup", 'w', AT(UNSIGNED, warmup), .placeholder = "N", .max = 1000,
     .help = "Runs before those, which are not counted."},
    {"prepare", 0, AT(TEXT, prepare), .placeholder = "COMMAND",
     .help = "For a shell, before every run: to clear a cache, to restore a file."},
    {"event", 'e', AT(LIST, events), .placeholder = "LIST",
     .help = "Events to count as well; 'sonde list' shows names."},
    {"functions", 0, AT(FLAG, functions), .negatable = true,
     .help = "After each timed run one that is sampled, to say which functions take the time. "
             "Without, half as many runs."},
    {"rate", 0, AT(UNSIGNED, rate), .placeholder = "HZ", .min = 10, .max = 10000,
     .help = "Samples a second in those."},
    {"show-output", 0, AT(FLAG, show_output), .help = "Let the commands write where sonde does."},
    {"ignore-failure", 'i', AT(FLAG, ignore_failure),
     .help = "Go on when a command ends with a status other than 0."},
    {"quiet", 'q', AT(FLAG, quiet), .help = "No progress."},
    {"fail-above", 0, AT(PERCENT, fail_above), .placeholder = "PCT", .high = 10000,
     .default_text = "never", .group = "Result",
     .help = "Status 3 if real or user time, memory, a counted event or a function has grown by "
             "more than PCT, beyond what chance explains."},
    {"job", 0, AT(UNSIGNED, job), .placeholder = "N", .min = JOB_FIRST, .max = JOB_LAST,
     .group = "Server",
     .help = "Add every run to this job of a server, as it is measured: 'sonde job show N --bench' "
             "has the history."},
    {"to", 0, AT(TEXT, to), .placeholder = "URL", .group = "Server",
     .default_text = "$SONDE_SERVER, or http://127.0.0.1:10000", .help = "The server of the job."},
    {"json", 0, AT(FLAG, json), .group = "Result", .help = "JSON: numbers as they are."},
    {"csv", 0, AT(FLAG, csv), .group = "Result", .help = "CSV of the table."},
    {"markdown", 0, AT(FLAG, markdown), .group = "Result", .help = "Markdown."},
    {0}};

static const struct bench_options defaults = {
    .runs = 30, .warmup = 1, .functions = true, .rate = 4999};

static int add_variants(struct invocation *inv, struct bench_runs *r, struct benchmark *b)
{
    for (int i = 0; i < inv->argc; i++) {
        const char *equals = strchr(inv->argv[i], '=');
        if (!equals || equals == inv->argv[i] || !equals[1 + strspn(equals + 1, " ")])
            return error_set(&inv->error, FAULT_USAGE, "--compare takes NAME=COMMAND, not '%s'",
                             inv->argv[i]);
        if (b->variants.len == BENCHMARK_VARIANTS_MAX)
            return error_set(&inv->error, FAULT_USAGE, "more than %d variants",
                             BENCHMARK_VARIANTS_MAX);
        char *name = memory_strndup(inv->argv[i], (size_t)(equals - inv->argv[i]));
        benchmark_add_variant(b, name, equals + 1);
        free(name);
        *vector_push(&r->variants) = (struct bench_variant){.argv = bench_words(equals + 1)};
    }
    if (b->variants.len < 2)
        return error_set(&inv->error, FAULT_USAGE,
                         "--compare needs two variants or more: 'A=./old' 'B=./new'");
    return 0;
}

static void add_command(struct invocation *inv, struct bench_runs *r, struct benchmark *b)
{
    struct text line = TEXT_INIT;
    char **argv = memory_array((size_t)inv->argc + 1, sizeof *argv);
    for (int i = 0; i < inv->argc; i++) {
        text_format(&line, "%s%s", i ? " " : "", inv->argv[i]);
        argv[i] = memory_strdup(inv->argv[i]);
    }
    benchmark_add_variant(b, inv->argv[0], line.data);
    *vector_push(&r->variants) = (struct bench_variant){.argv = argv};
    text_release(&line);
}

static int print(const struct bench_options *o, const struct benchmark *b, struct error *err)
{
    struct view v;
    int rc;
    benchmark_view(&v, b);
    if (o->markdown) {
        struct text t = TEXT_INIT;
        markdown_write(&v, &t);
        rc = io_write(STDOUT_FILENO, t.data, t.len);
        if (rc && errno != EPIPE)
            rc = error_errno(err, FAULT_SYSTEM, "cannot write the result");
        text_release(&t);
    } else {
        rc = view_print(&v, o->json, o->csv, err);
    }
    view_release(&v);
    return rc;
}

static int judge(const struct benchmark *b, double limit, struct error *err)
{
    struct text worst = TEXT_INIT;
    size_t grown = benchmark_grown(b, limit, &worst);
    if (grown)
        error_set(err, FAULT_INPUT, "%s, more than the %g%% allowed%s", worst.data, limit,
                  grown > 1 ? "; others grew too much as well" : "");
    text_release(&worst);
    return grown ? STATUS_GROWN : 0;
}

static int check(const struct invocation *inv, struct error *err)
{
    const struct bench_options *o = inv->options;
    if (o->json + o->csv + o->markdown > 1)
        return error_set(err, FAULT_USAGE, "--json, --csv and --markdown exclude each other");
    if (!o->compare && invocation_given(inv, "fail-above"))
        return error_set(err, FAULT_USAGE, "--fail-above goes with --compare");
    if (o->to && !o->job)
        return error_set(err, FAULT_USAGE, "--to goes with --job: to which job?");
    return 0;
}

static int add_round(void *context, const struct benchmark *b, size_t run, struct error *err)
{
    return bench_job_add(context, b, run, err);
}

static int measure(const struct bench_options *o, struct bench_runs *r, struct benchmark *b,
                   struct error *err)
{
    struct bench_job *j = NULL;
    int rc = o->job ? bench_job_open(o->to, (uint32_t)o->job, o->quiet, &j, err) : 0;
    r->round = j ? add_round : NULL;
    r->context = j;
    if (!rc)
        rc = bench_run(r, b, err);
    bench_job_free(j);
    return rc;
}

static int run(struct invocation *inv)
{
    const struct bench_options *o = inv->options;
    struct bench_runs r = {.events = &o->events,
                           .runs = o->runs,
                           .warmup = o->warmup,
                           .rate = o->rate,
                           .prepare = o->prepare,
                           .functions = o->functions,
                           .show_output = o->show_output,
                           .ignore_failure = o->ignore_failure,
                           .progress = !o->quiet && isatty(STDERR_FILENO)};
    struct benchmark b;
    benchmark_init(&b);
    int rc = check(inv, &inv->error);
    if (!rc && o->compare)
        rc = add_variants(inv, &r, &b);
    else if (!rc)
        add_command(inv, &r, &b);
    if (!rc)
        rc = measure(o, &r, &b, &inv->error);
    if (!rc)
        rc = print(o, &b, &inv->error);
    if (!rc && invocation_given(inv, "fail-above"))
        rc = judge(&b, o->fail_above, &inv->error);
    bench_runs_release(&r);
    benchmark_release(&b);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde bench -- ./app input", "30 runs: times, memory, faults, and the functions' shares"},
    {"sonde bench --compare 'A=./old' 'B=./new'", "which is faster, and which functions changed"},
    {"sonde bench --compare 'main=./a' 'branch=./b' --fail-above 2%",
     "a check for continuous integration"},
    {"sonde bench --job 2001 --to http://prof:10000 -- ./app input",
     "the same, and every run is kept in a job of a server"},
    {"sonde bench --prepare 'rm -rf cache' --markdown -- ./build", "each run from cold"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_GROWN, "with --fail-above: something has grown by more than that"}, {0}};

static const char *const see_also[] = {"stat", "diff", "job", "run", NULL};

const struct command command_bench = {
    .name = "bench",
    .summary = "Measure a command many times, or compare several",
    .usage = "[OPTION]... [--] COMMAND... | --compare NAME=COMMAND...",
    .description =
        "Runs the command many times and shows mean, median and spread of what it took, how many "
        "runs were outliers, and how much of the time was taken by others: waited for a CPU, or "
        "stolen by the hypervisor.\n\n"
        "With --compare the variants run in turns, so that a busy or slow phase of the machine "
        "falls on all alike. A change is called one only if chance makes such a difference in less "
        "than one of a hundred comparisons, all measurements together. Functions are compared by "
        "the time that samples give to them, run by run.",
    .options = options,
    .options_size = sizeof(struct bench_options),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = COMMAND_ANY,
    .operand = "COMMAND",
    .operands_end_options = false,
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
