/* sonde verify: how far to trust sonde here and now, and other tools' files. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "cmd/command.h"
#include "cmd/printing.h"
#include "cmd/reading.h"
#include "cmd/verify_runs.h"

#define TRUTH_MAX ((size_t)16 << 20)

struct verify_options {
    bool json, csv, claims, program, quiet;
    const char *file, *truth;
    uint64_t repeat;
};

static const struct option options[] = {
    {"file", 0, OPTION_TEXT_AT(struct verify_options, file), .placeholder = "FILE",
     .help = "Measure this recording, or another tool's file, in the place of running anything."},
    {"truth", 0, OPTION_TEXT_AT(struct verify_options, truth), .placeholder = "FILE",
     .help = "With --file: what is true of the run that it is of."},
    {"repeat", 'n', OPTION_UNSIGNED_AT(struct verify_options, repeat), .placeholder = "N", .min = 1,
     .max = 100, .help = "Runs of each program, alone and under sonde; errors are of their mean."},
    {"claims", 'c', OPTION_FLAG_AT(struct verify_options, claims),
     .help = "Show every claim, not only those that do not hold."},
    {"program", 0, OPTION_FLAG_AT(struct verify_options, program),
     .help = "Print where the program of known truth is, and end: other tools can run it, too."},
    {"quiet", 'q', OPTION_FLAG_AT(struct verify_options, quiet), .help = "No progress."},
    {"json", 0, OPTION_FLAG_AT(struct verify_options, json), .help = "JSON."},
    {"csv", 0, OPTION_FLAG_AT(struct verify_options, csv),
     .help = "The main table as comma-separated values."},
    {0}};

static const struct verify_options defaults = {.repeat = 3};

static int print_program(struct error *err)
{
    char path[4096];
    int rc = verify_program(false, path, sizeof path, err);
    if (!rc)
        printf("%s\n", path);
    return rc;
}

static int check_file(struct invocation *inv)
{
    const struct verify_options *o = inv->options;
    struct profile p;
    struct truth truth;
    struct view v;
    struct load_options load = {.hide_interpreter = true};
    char *text;
    size_t wrong = 0;
    int rc = io_slurp(o->truth, TRUTH_MAX, &text, NULL, &inv->error);
    if (rc)
        return rc;
    profile_init(&p);
    rc = truth_parse(&truth, text, &inv->error);
    free(text);
    if (rc)
        error_prefix(&inv->error, "%s", o->truth);
    if (!rc)
        rc = reading_open(o->file, NULL, &load, &p, &inv->error);
    if (!rc) {
        truth_check(&truth, &p);
        for (size_t i = 0; i < truth.claims.len; i++)
            wrong += !truth_holds(&truth.claims.data[i]);
        view_init(&v, "verify", "", "claims");
        truth_view_claims(&v, &(const struct truth *){&truth}, 1, false);
        rc = view_print(&v, o->json, o->csv, &inv->error);
        view_release(&v);
    }
    profile_release(&p);
    truth_release(&truth);
    return rc ? rc : wrong ? STATUS_WRONG : 0;
}

/* Every kind, or those that were named: a workload is run for any of its kinds. */
static bool is_wanted(const struct invocation *inv, const struct verify_workload *w)
{
    for (int i = 0; i < inv->argc; i++)
        for (size_t k = 0; w->kinds[k]; k++)
            if (fnmatch(inv->argv[i], w->kinds[k], 0) == 0)
                return true;
    return inv->argc == 0;
}

static int check_kinds(const struct invocation *inv, struct error *err)
{
    for (int i = 0; i < inv->argc; i++) {
        bool found = false;
        for (const struct verify_workload *w = verify_workloads; w->name && !found; w++)
            for (size_t k = 0; w->kinds[k] && !found; k++)
                found = fnmatch(inv->argv[i], w->kinds[k], 0) == 0;
        if (!found)
            return error_set(err, FAULT_USAGE,
                             "'%s' is no kind: there are cpu, wall, heap, peak, leaks, calls, "
                             "'python lines' and 'python calls'",
                             inv->argv[i]);
    }
    return 0;
}

struct results {
    struct verify_run run[VERIFY_KINDS_MAX];
    size_t len;
};

static bool show(const struct results *all, const struct verify_options *o, struct error *err)
{
    struct truth_kind kinds[VERIFY_KINDS_MAX * 4];
    const struct truth *truths[VERIFY_KINDS_MAX];
    size_t n = 0, wrong = 0;
    struct view v;
    for (size_t i = 0; i < all->len; i++) {
        truths[i] = &all->run[i].truth;
        for (size_t k = 0; k < all->run[i].kind_count; k++) {
            kinds[n] = all->run[i].kinds[k];
            wrong += truth_kind_fails(&kinds[n++]);
        }
    }
    view_init(&v, "verify", "", "kinds");
    truth_view_kinds(&v, kinds, n);
    if (o->claims || o->json || wrong)
        truth_view_claims(&v, truths, all->len, !o->claims && !o->json);
    struct view_section *s = view_add(&v, VIEW_NOTES, "notes", "");
    view_note(s, NOTE_INFO,
              "error: of the claim nearest to its bound, in points of a share, else in % of the "
              "value; cost: CPU time that the program used more under sonde, with what runs alone "
              "differ by; sonde: its own, beside the program");
    for (size_t i = 0; i < n; i++) {
        char note[400];
        snprintf(note, sizeof note, "%s was not measured: %.300s", kinds[i].name,
                 kinds[i].why ? kinds[i].why : "");
        if (kinds[i].why)
            view_note(s, NOTE_WARNING, note);
    }
    view_print(&v, o->json, o->csv, err);
    view_release(&v);
    return wrong > 0;
}

static int verify_all(struct invocation *inv)
{
    const struct verify_options *o = inv->options;
    struct results all = {0};
    bool progress = !o->quiet && isatty(STDERR_FILENO);
    int rc = check_kinds(inv, &inv->error);
    for (const struct verify_workload *w = verify_workloads; w->name && !rc; w++) {
        if (!is_wanted(inv, w))
            continue;
        if (progress)
            fprintf(stderr, "\r\033[Ksonde: measuring %s\r", w->kinds[0]);
        rc = verify_measure(&all.run[all.len++], w, (unsigned)o->repeat, &inv->error);
    }
    if (progress)
        fputs("\r\033[K", stderr);
    if (!rc)
        rc = show(&all, o, &inv->error) ? STATUS_WRONG : 0;
    for (size_t i = 0; i < all.len; i++)
        verify_run_release(&all.run[i]);
    return inv->error.fault ? (int)inv->error.fault : rc;
}

static int run(struct invocation *inv)
{
    const struct verify_options *o = inv->options;
    if (o->json && o->csv)
        return error_set(&inv->error, FAULT_USAGE, "--json and --csv: choose one");
    if (!o->file != !o->truth)
        return error_set(&inv->error, FAULT_USAGE, "--file and --truth go together");
    if (o->file && inv->argc)
        return error_set(&inv->error, FAULT_USAGE, "--file is measured as it is: leave out '%s'",
                         inv->argv[0]);
    if (o->program)
        return print_program(&inv->error);
    return o->file ? check_file(inv) : verify_all(inv);
}

static const struct command_example examples[] = {
    {"sonde verify", "every kind of measurement, here and now"},
    {"sonde verify --claims cpu heap", "two of them, claim by claim"},
    {"sonde verify --file perf.data --truth truth.txt", "how right another tool was"},
    {0}};

static const struct command_status statuses[] = {{STATUS_WRONG, "something is beyond its bound"},
                                                 {0}};

static const char *const see_also[] = {"doctor", "import", "bench", NULL};

const struct command command_verify = {
    .name = "verify",
    .summary = "Measure the profiler: its error and cost, here and now",
    .usage = "[OPTION]... [KIND]...",
    .description =
        "Runs programs that know their own truth, alone and under sonde, and compares: shares of "
        "CPU and of elapsed time, what was allocated, held at the peak and never freed, how often "
        "functions were called, which lines of Python cost what. A table tells, by kind, how far "
        "sonde was off, what it cost, and the bound of each; beyond one, the status is 5.\n\n"
        "With --file and --truth it measures any file that sonde import reads, so that one can see "
        "which profiler to trust. docs/VERIFY.md describes the format of the truth.",
    .options = options,
    .options_size = sizeof(struct verify_options),
    .defaults = &defaults,
    .operands_max = COMMAND_ANY,
    .operand = "KIND",
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
