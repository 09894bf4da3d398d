/* sonde stat: counts of a command, of processes or of whole CPUs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/counting.h"
#include "analyze/model.h"
#include "base/io.h"
#include "base/memory.h"
#include "capture/count.h"
#include "cmd/command.h"
#include "cmd/printing.h"
#include "cmd/quantity.h"
#include "cmd/simulated.h"
#include "cmd/status.h"
#include "render/counts.h"

#define ATTACH_MAX 1024
#define PLACES_TOP 10

struct stat_options {
    struct option_list events, pids;
    uint64_t repeat, duration;
    const char *interval, *output;
    bool all, per_thread, detailed, json, csv, force;
    const char *simulate, *record;
};

#define AT(kind, field) OPTION_##kind##_AT(struct stat_options, field)

static const struct option options[] = {
    {"event", 'e', AT(LIST, events), .placeholder = "LIST", .default_text = "as perf stat",
     .help = "What to count, with commas between, {a,b} for a group that is counted together; "
             "'sonde list' shows names. :u and :k count one side only. May be repeated."},
    {"detailed", 'd', AT(FLAG, detailed), .help = "Events of the caches as well."},
    {"repeat", 'r', AT(UNSIGNED, repeat), .placeholder = "N", .min = 1, .max = 1000000,
     .help = "Run the command N times; mean and spread are shown."},
    {"pid", 'p', AT(LIST, pids), .placeholder = "PID",
     .help = "Count these processes and what they start, until they end, until interrupted, or "
             "while COMMAND runs."},
    {"all-cpus", 'a', AT(FLAG, all), .help = "Count everything on all CPUs."},
    {"per-thread", 0, AT(FLAG, per_thread), .help = "Each thread of each process by itself too."},
    {"interval", 'I', AT(TEXT, interval), .placeholder = "MS",
     .help = "Show what was counted every so many milliseconds; 2s and the like will do too."},
    {"duration", 0, AT(DURATION, duration), .placeholder = "TIME", .default_text = "until the end",
     .help = "Stop after this long; a command is ended then."},
    {"simulate", 0, AT(TEXT, simulate), .placeholder = "MODEL", .alone = "cache",
     .group = "Simulation",
     .help = "Run the command under valgrind and count in its model of a CPU, by function and line "
             "too: cache (as cachegrind does), or calls (callgrind: callers as well). Needs no "
             "PMU; takes 20 to 100 times as long."},
    {"record", 0, AT(TEXT, record), .placeholder = "FILE", .group = "Simulation",
     .help = "With --simulate: a recording of it, for sonde report, graph and diff."},
    {"force", 'f', AT(FLAG, force), .group = "Simulation",
     .help = "Replace the recording if it is there already."},
    {"output", 'o', AT(TEXT, output), .placeholder = "FILE",
     .default_text = "standard error with a command, else standard output",
     .help = "Where the table goes; - is standard output."},
    {"json", 'j', AT(FLAG, json), .help = "JSON: numbers as they are."},
    {"csv", 0, AT(FLAG, csv), .help = "CSV of the table."},
    {0}};

static const struct stat_options defaults = {.repeat = 1};

struct stat_run {
    const struct stat_options *o;
    struct counter_plan plan;
    struct counts counts;
    struct count_options count;
    pid_t pids[ATTACH_MAX];
    int fd; /* for the table */
};

static int parse_pids(struct stat_run *s, struct error *err)
{
    for (size_t i = 0; i < s->o->pids.len; i++) {
        for (const char *at = s->o->pids.data[i]; *at;) {
            char *end;
            errno = 0;
            long pid = strtol(at, &end, 10);
            if (end == at || (*end && *end != ',') || errno || pid <= 0 || pid > INT32_MAX)
                return error_set(err, FAULT_USAGE, "'%s' is not a process number",
                                 s->o->pids.data[i]);
            if (s->count.attach_count == ATTACH_MAX)
                return error_set(err, FAULT_USAGE, "more than %d processes", ATTACH_MAX);
            s->pids[s->count.attach_count++] = (pid_t)pid;
            at = *end ? end + 1 : end;
        }
    }
    s->count.attach = s->pids;
    return 0;
}

static int parse_interval(struct stat_run *s, struct error *err)
{
    uint64_t ms, ns;
    const char *text = s->o->interval;
    if (!text)
        return 0;
    if (quantity_unsigned(text, false, &ms) && ms <= 86400000)
        ns = ms * 1000000;
    else if (!quantity_duration(text, &ns))
        return error_set(err, FAULT_USAGE, "--interval takes milliseconds, or 2s; not '%s'", text);
    if (ns < 1000000)
        return error_set(err, FAULT_USAGE, "--interval must be 1 ms or more");
    s->count.interval = ns;
    return 0;
}

static int parse_events(struct stat_run *s, struct error *err)
{
    int rc = 0;
    if (s->o->simulate && !s->o->events.len)
        return 0; /* all that the model knows */
    for (size_t i = 0; i < s->o->events.len && !rc; i++)
        rc = counter_plan_add(&s->plan, &s->counts, s->o->events.data[i], err);
    if (!rc && !s->o->events.len)
        rc = counter_plan_default(&s->plan, &s->counts, err);
    if (!rc && s->o->detailed)
        rc = counter_plan_add(&s->plan, &s->counts,
                              "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
                              err);
    if (!rc && !s->counts.events.len)
        rc = error_set(err, FAULT_USAGE, "-e names no event");
    return rc;
}

static int check(const struct stat_options *o, int argc, struct error *err)
{
    if (o->json && o->csv)
        return error_set(err, FAULT_USAGE, "--json and --csv exclude each other");
    if (o->all && o->pids.len)
        return error_set(err, FAULT_USAGE, "-a counts everything, -p processes: choose one");
    if (o->all && o->per_thread)
        return error_set(err, FAULT_USAGE, "--per-thread is for commands and processes, not -a");
    if (o->per_thread && o->interval)
        return error_set(err, FAULT_USAGE,
                         "--per-thread is known when threads end: it excludes --interval");
    if (!argc && !o->all && !o->pids.len)
        return error_set(err, FAULT_USAGE, "nothing to count: name a command, -p PID or -a");
    if (o->repeat > 1 && (!argc || o->interval || o->per_thread))
        return error_set(err, FAULT_USAGE,
                         "--repeat runs a command again, without --interval and --per-thread");
    if (o->simulate && (!argc || o->all || o->pids.len || o->per_thread || o->interval ||
                        o->repeat > 1 || o->duration))
        return error_set(err, FAULT_USAGE,
                         "--simulate runs one command, without -p, -a, -r, -I, --per-thread and "
                         "--duration");
    if (o->simulate && strcmp(o->simulate, "cache") && strcmp(o->simulate, "calls"))
        return error_set(err, FAULT_USAGE, "--simulate takes cache or calls, not '%s'",
                         o->simulate);
    if (o->record && !o->simulate)
        return error_set(err, FAULT_USAGE, "--record goes with --simulate; see 'sonde run' else");
    return 0;
}

/* 'make -j4', process 12, or all CPUs. */
static void describe(const struct stat_options *o, struct invocation *inv, struct text *t)
{
    if (o->all) {
        text_add(t, "all CPUs");
        return;
    }
    if (o->pids.len) {
        text_add(t, "process id '");
        for (size_t i = 0; i < o->pids.len; i++)
            text_format(t, "%s%s", i ? "," : "", o->pids.data[i]);
        text_add_char(t, '\'');
        return;
    }
    text_add_char(t, '\'');
    for (int i = 0; i < inv->argc; i++)
        text_format(t, "%s%s", i ? " " : "", inv->argv[i]);
    text_add_char(t, '\'');
}

static void show_interval(void *context, const struct counts *c)
{
    const struct stat_run *s = context;
    struct text t = TEXT_INIT;
    counts_write_interval(c, &t);
    if (io_write(s->fd, t.data, t.len))
        errno = 0; /* nobody reads any more: the counting goes on, the end says so */
    text_release(&t);
}

/* Names of the events that were refused for one reason, as one note. */
static void note_refusals(struct counts *c)
{
    bool *told = memory_array(c->events.len + 1, sizeof *told), pmu = false;
    for (size_t i = 0; i < c->events.len; i++) {
        const char *why = c->events.data[i].refused;
        struct text names = TEXT_INIT;
        for (size_t k = i; why && !told[i] && k < c->events.len; k++)
            if (c->events.data[k].refused && !strcmp(c->events.data[k].refused, why)) {
                text_format(&names, "%s%s", names.len ? ", " : "", c->events.data[k].name);
                told[k] = k != i;
            }
        if (names.len) {
            counts_note(c, NOTE_INFO, "not supported: %s: %s", names.data, why);
            pmu |= strstr(why, "no PMU") != NULL;
        }
        text_release(&names);
    }
    free(told);
    if (pmu && !c->cpus)
        counts_note(c, NOTE_INFO,
                    "sonde stat --simulate counts instructions, cache misses and branches in a "
                    "model of the CPU");
}

static void note_origins(struct counts *c)
{
    bool user_only = false, accounted = false;
    for (size_t i = 0; i < c->events.len; i++) {
        user_only |= c->events.data[i].user_only && !c->events.data[i].refused;
        accounted |= c->events.data[i].origin == COUNTS_ACCOUNTED;
    }
    if (user_only)
        counts_note(c, NOTE_INFO,
                    ":u: this user may not count in the kernel (kernel.perf_event_paranoid); "
                    "counted is the programs' own side");
    if (accounted)
        counts_note(c, NOTE_INFO,
                    "perf events are refused: what could be had comes from the kernel's accounts "
                    "of the processes ('sonde doctor' tells more)");
}

/* `places` are those of a simulated run, or NULL. */
static int print(struct stat_run *s, const struct profile *places, struct error *err)
{
    struct counts *c = &s->counts;
    note_refusals(c);
    note_origins(c);
    if (s->o->json || s->o->csv) {
        struct view v;
        counting_view(&v, c);
        if (places)
            model_places(&v, places, 0);
        int rc = view_print_to(s->fd, &v, s->o->json, s->o->csv, err);
        view_release(&v);
        return rc;
    }
    struct text t = TEXT_INIT;
    counts_write(c, terminal_style_of(s->fd), &t);
    if (places) {
        struct view v;
        view_init(&v, "simulated", "", "functions");
        model_places(&v, places, PLACES_TOP);
        terminal_write(&v, terminal_style_of(s->fd), &t);
        view_release(&v);
    }
    int rc = io_write(s->fd, t.data, t.len);
    text_release(&t);
    if (rc && errno != EPIPE)
        return error_errno(err, FAULT_SYSTEM, "cannot write the table");
    return 0;
}

static int open_output(struct stat_run *s, bool command, struct error *err)
{
    const char *path = s->o->output;
    s->fd = command ? STDERR_FILENO : STDOUT_FILENO;
    if (path && !strcmp(path, "-"))
        s->fd = STDOUT_FILENO;
    else if (path)
        s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return s->fd < 0 ? error_errno(err, FAULT_SYSTEM, "cannot write %s", path) : 0;
}

static int status_of(const struct count_result *r)
{
    if (!r->ended)
        return 0;
    return WIFSIGNALED(r->status) ? STATUS_SIGNAL + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static int count(struct stat_run *s, struct invocation *inv)
{
    struct count_result r = {0};
    int rc = 0;
    for (uint64_t i = 0; i < s->o->repeat && !rc && !r.interrupted; i++)
        rc = count_run(&s->count, &s->plan, &s->counts, &r, &inv->error);
    if (r.exec_errno)
        return r.exec_errno == ENOENT || r.exec_errno == ENOTDIR ? STATUS_NOT_FOUND
                                                                 : STATUS_NOT_EXECUTABLE;
    if (rc)
        return rc;
    rc = print(s, NULL, &inv->error);
    return rc ? rc : status_of(&r);
}

static int simulate(struct stat_run *s, struct invocation *inv)
{
    struct simulated m;
    struct simulated_options how = {.calls = !strcmp(s->o->simulate, "calls"),
                                    .record = s->o->record,
                                    .replace = s->o->force,
                                    .command = inv->argv};
    int rc = simulated_run(&m, &how, &s->counts, &inv->error);
    if (!rc) {
        rc = print(s, &m.profile, &inv->error);
        rc = rc ? rc : m.status;
    }
    simulated_release(&m);
    return rc;
}

static int run(struct invocation *inv)
{
    struct launch_options launch = {.argv = inv->argv};
    struct stat_run *s = memory_alloc(sizeof *s);
    struct text subject = TEXT_INIT;
    s->o = inv->options;
    int rc = check(s->o, inv->argc, &inv->error);
    describe(s->o, inv, &subject);
    counts_init(&s->counts, subject.data);
    s->count.launch = inv->argc ? &launch : NULL;
    s->count.all_cpus = s->o->all;
    s->count.per_thread = s->o->per_thread;
    s->count.duration = s->o->duration;
    if (!s->o->json && !s->o->csv)
        s->count.on_interval = show_interval;
    s->count.context = s;
    if (!rc)
        rc = parse_pids(s, &inv->error);
    if (!rc)
        rc = parse_interval(s, &inv->error);
    if (!rc)
        rc = parse_events(s, &inv->error);
    s->fd = -1;
    if (!rc)
        rc = open_output(s, inv->argc > 0, &inv->error);
    if (!rc)
        rc = s->o->simulate ? simulate(s, inv) : count(s, inv);
    if (s->fd > STDERR_FILENO)
        close(s->fd);
    counter_plan_release(&s->plan);
    counts_release(&s->counts);
    text_release(&subject);
    free(s);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde stat -- make -j4", "times, memory, faults, switches, cycles, instructions"},
    {"sonde stat -r 10 -e '{cycles,instructions}' -- ./app", "ten runs, two events as a group"},
    {"sonde stat -p 1234 -I 1000", "what a process does, second by second"},
    {"sonde stat -a -- sleep 10", "the whole machine for ten seconds"},
    {"sonde stat --simulate -- ./app", "cache misses without a PMU, by function and line"},
    {"sonde stat --per-thread --json -o - -- ./server", "each thread, for another program"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_NOT_EXECUTABLE, "the command was found but could not be executed"},
    {STATUS_NOT_FOUND, "the command was not found"},
    {STATUS_SIGNAL, "plus N: the command was ended by signal N"},
    {0}};

static const char *const see_also[] = {"list", "run", NULL};

const struct command command_stat = {
    .name = "stat",
    .summary = "Count events of a command, of processes or CPUs",
    .usage = "[OPTION]... [--] [COMMAND [ARGUMENT]...]",
    .description =
        "Counts what COMMAND and all that it starts did: time, memory, page faults, switches, and "
        "the events of the CPU's own counters with the ratios that follow from them. Its output, "
        "status and signals stay as they are, and its status becomes the status of sonde.\n\n"
        "An event that this machine or user does not have is shown as <not supported>, with the "
        "reason below the table; the others are counted all the same. Where there are more events "
        "than counters, they take turns: the values are scaled up, and the share of the time that "
        "each was really counted is shown in parentheses.",
    .options = options,
    .options_size = sizeof(struct stat_options),
    .defaults = &defaults,
    .operands_max = COMMAND_ANY,
    .operand = "COMMAND",
    .operands_end_options = true,
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
