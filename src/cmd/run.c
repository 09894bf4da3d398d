/* sonde run: start a command, record it and all that it starts. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "capture/session.h"
#include "cmd/command.h"
#include "cmd/record.h"
#include "cmd/remote.h"
#include "cmd/streaming.h"
#include "cmd/tracing.h"

struct run_options {
    struct record_options record;
    struct streaming_options streaming;
    const char *cpus, *cwd, *nice;
    uint64_t memory_limit, timeout;
    double cpu_limit;
    struct option_list env;
    bool follow, pymalloc, python;
    enum heap_mode heap;
    uint64_t heap_interval, agent_memory;
    struct tracing_options tracing;
};

static const char *const heap_modes[] = {"off", "exact", "sampled", NULL};

static const struct option options[] = {
    RECORD_OPTIONS(struct run_options, record),
    {"heap", 0, OPTION_CHOICE_AT(struct run_options, heap), .placeholder = "MODE",
     .choices = heap_modes, .alone = "exact", .group = "What to record",
     .help = "Every allocation of every process as well, by stack; sampled: a few of them, for "
             "programs that must stay fast."},
    {"heap-interval", 0, OPTION_SIZE_AT(struct run_options, heap_interval), .placeholder = "BYTES",
     .min = 1, .max = 1ull << 40, .group = "What to record",
     .help = "With --heap=sampled: bytes allocated between two samples, on average."},
    {"pymalloc", 0, OPTION_FLAG_AT(struct run_options, pymalloc), .group = "Python",
     .help = "With --heap: each object and buffer that Python allocates, not only the arenas that "
             "its own allocator takes them from."},
    {"agent-memory", 0, OPTION_SIZE_AT(struct run_options, agent_memory), .placeholder = "BYTES",
     .min = HEAP_MEMORY_MIN, .max = HEAP_MEMORY_MAX, .group = "What to record",
     .help = "With --heap: addresses in each process that the tables may take; beyond, what does "
             "not fit is counted."},
    TRACING_OPTIONS(struct run_options, tracing),
    {"follow", 0, OPTION_FLAG_AT(struct run_options, follow), .negatable = true, .group = "Target",
     .help = "Follow the processes that the command starts."},
    {"python", 0, OPTION_FLAG_AT(struct run_options, python), .negatable = true,
     .group = "What to record",
     .default_text = "from inside if the command is Python, else outside",
     .help = "Python functions in the place of the interpreter's, in every process that turns out "
             "to be Python. With --python they are taken from inside, which misses none, and the "
             "programs see LD_PRELOAD in their environment."},
    {"cpus", 0, OPTION_TEXT_AT(struct run_options, cpus), .placeholder = "LIST", .group = "Target",
     .default_text = "all", .help = "Run the command on these CPUs only, for example 0,2-3."},
    {"nice", 0, OPTION_TEXT_AT(struct run_options, nice), .placeholder = "N", .group = "Target",
     .help = "Its priority, from -20 (first) to 19 (last)."},
    {"memory-limit", 0, OPTION_SIZE_AT(struct run_options, memory_limit), .placeholder = "BYTES",
     .min = 1 << 20, .group = "Target",
     .help = "Memory that it and all it starts may use: by a control group, or else address space "
             "of each process; the report says which."},
    {"cpu-limit", 0, OPTION_DOUBLE_AT(struct run_options, cpu_limit), .placeholder = "CPUS",
     .low = 0.01, .high = 4096, .group = "Target",
     .help = "CPU time that all of it together gets, in CPUs: 0.5 is half of one. Needs a control "
             "group."},
    {"timeout", 0, OPTION_DURATION_AT(struct run_options, timeout), .placeholder = "TIME",
     .group = "Target", .help = "End the command after this long: SIGTERM, then SIGKILL."},
    {"cwd", 0, OPTION_TEXT_AT(struct run_options, cwd), .placeholder = "DIR", .group = "Target",
     .help = "Run the command in this folder."},
    {"env", 0, OPTION_LIST_AT(struct run_options, env), .placeholder = "KEY=VALUE",
     .group = "Target", .help = "Set an environment variable for the command; may be repeated."},
    STREAMING_OPTIONS(struct run_options, streaming),
    {0}};

static const struct run_options defaults = {.record = RECORD_DEFAULTS,
                                            .tracing = TRACING_DEFAULTS,
                                            .follow = true,
                                            .heap_interval = HEAP_INTERVAL_DEFAULT,
                                            .agent_memory = HEAP_MEMORY_DEFAULT};

static int status_of_exec(int code)
{
    return code == ENOENT || code == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

static int status_of(const struct session_result *r)
{
    int status = r->status;
    if (!r->ended && r->left_running && waitpid(r->left_running, &status, 0) < 0)
        return STATUS_FAILED;
    return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int check_environment(const struct option_list *env, struct error *err)
{
    for (size_t i = 0; i < env->len; i++) {
        const char *equals = strchr(env->data[i], '=');
        if (!equals || equals == env->data[i])
            return error_set(err, FAULT_USAGE, "--env takes KEY=VALUE, not '%s'", env->data[i]);
    }
    return 0;
}

/* In place of the name of a file that is gone. */
static void say_added(const struct streaming_options *to, const struct session_result *result)
{
    struct error why = {0};
    unsigned waiting = streaming_waiting(to, &why);
    if (waiting)
        remote_say_waiting("run", waiting, &why);
    else
        fprintf(stderr, "sonde: %llu samples of %zu process%s added to job %u of %s\n",
                (unsigned long long)result->samples, result->processes,
                result->processes == 1 ? "" : "es", (unsigned)to->job, to->to);
}

/* Records, and hands it to a server where one was named. */
static int record_to(struct invocation *inv, struct session_options *session,
                     struct session_result *result)
{
    struct run_options *o = inv->options;
    struct record_options how = o->record;
    struct streaming streaming;
    int rc = streaming_start(&streaming, &o->streaming, inv->argv[0], how.output, how.quiet,
                             &inv->error);
    if (rc)
        return rc;
    bool server = o->streaming.to != NULL, temporary = streaming.output != NULL;
    if (temporary) {
        how.output = streaming.output;
        how.force = how.quiet = true;
    }
    rc = record(&how, session, inv->argv[0], result, &inv->error);
    bool all = streaming_finish(&streaming);
    if (server && !all && !inv->error.fault)
        error_set(&inv->error, FAULT_SYSTEM, "not all of the recording could be handed over");
    else if (temporary && !rc && !o->record.quiet)
        say_added(&o->streaming, result);
    return rc;
}

static int take_limits(const struct run_options *o, struct limits *l, struct error *err)
{
    char *end;
    l->bound_to = o->cpus;
    l->memory = o->memory_limit;
    l->cpus = o->cpu_limit;
    if (o->nice) {
        long nice = strtol(o->nice, &end, 10);
        if (end == o->nice || *end || nice < -20 || nice > 19)
            return error_set(err, FAULT_USAGE, "--nice takes a number from -20 to 19, not '%s'",
                             o->nice);
        l->nice = (int)nice;
        l->nice_given = true;
    }
    return limits_prepare(l, err);
}

static int run(struct invocation *inv)
{
    struct run_options *o = inv->options;
    struct limits limits = {0};
    cpu_set_t cpus;
    struct launch_options launch = {
        .argv = inv->argv, .cwd = o->cwd, .env = o->env.data, .env_count = o->env.len};
    int rc = check_environment(&o->env, &inv->error);
    if (!rc && o->cpus)
        rc = launch_parse_cpus(o->cpus, &cpus, &inv->error);
    if (rc)
        return rc;
    launch.cpus = o->cpus ? &cpus : NULL;
    rc = take_limits(o, &limits, &inv->error);
    if (rc) {
        limits_release(&limits);
        return rc == FAULT_USAGE ? rc : STATUS_NOT_STARTED;
    }
    launch.limits = &limits;
    struct session_options session = {.launch = &launch};
    struct session_result result = {0};
    session.perf.threads_only = !o->follow;
    session.no_python = invocation_given(inv, "python") && !o->python;
    session.python_inside = o->python;
    session.python_outside = !o->python && !launch_is_python(inv->argv[0]);
    session.heap = o->heap;
    session.heap_interval = o->heap_interval;
    session.pymalloc = o->pymalloc;
    /* Small objects come from many more places than large blocks. */
    if (o->pymalloc && !invocation_given(inv, "agent-memory"))
        o->agent_memory = 4 * HEAP_MEMORY_DEFAULT;
    session.agent_memory = o->agent_memory & ~4095ull;
    session.timeout = o->timeout;
    struct tracing tracing;
    rc = tracing_apply(&o->tracing, &tracing, &session, &inv->error);
    if (!rc)
        rc = record_to(inv, &session, &result);
    tracing_release(&tracing);
    limits_release(&limits);
    if (result.exec_errno)
        return status_of_exec(result.exec_errno);
    if (!result.started)
        return rc == FAULT_USAGE ? rc : STATUS_NOT_STARTED;
    return status_of(&result);
}

static const struct command_example examples[] = {
    {"sonde run -- ./app --fast", "record the program and everything it starts"},
    {"sonde run --wall -- ./server", "blocked time as well, with its cause"},
    {"sonde run -e page-faults -- ./app", "who touches new memory"},
    {"sonde run --rate 4000 -o app.sonde -- make -j4", "a finer look at a build"},
    {"sonde run --to http://prof:10000 --job 2001 -e cpu,page-faults -- ./app",
     "add to a job of a server"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_NOT_STARTED, "sonde failed before the command was started"},
    {STATUS_NOT_EXECUTABLE, "the command was found but could not be executed"},
    {STATUS_NOT_FOUND, "the command was not found"},
    {STATUS_SIGNAL, "plus N: the command was ended by signal N"},
    {0}};

static const char *const see_also[] = {"attach", "report", "graph", NULL};

const struct command command_run = {
    .name = "run",
    .summary = "Record a command and everything it starts",
    .usage = "[OPTION]... [--] COMMAND [ARGUMENT]...",
    .description =
        "Starts COMMAND and records where its time goes: every thread of every process that it "
        "starts, until the last one ends. Its output, status and signals stay as they are, and its "
        "status becomes the status of sonde.\n\n"
        "The recording is one file; sonde report, graph and export read it, here or on any other "
        "machine. Stacks are whole also for programs built without frame pointers.",
    .options = options,
    .options_size = sizeof(struct run_options),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = COMMAND_ANY,
    .operand = "COMMAND",
    .operands_end_options = true,
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
