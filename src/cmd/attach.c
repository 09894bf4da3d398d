/* sonde attach: record processes that already run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vector.h"
#include "capture/session.h"
#include "cmd/command.h"
#include "cmd/record.h"
#include "cmd/tracing.h"

struct attach_options {
    struct record_options record;
    bool follow, python, pause;
    enum heap_mode heap;
    uint64_t heap_interval, agent_memory;
    const char *invite;
    struct tracing_options tracing;
};

static const char *const heap_modes[] = {"off", "exact", "sampled", NULL};

static const struct option options[] = {
    RECORD_OPTIONS(struct attach_options, record),
    {"follow", 0, OPTION_FLAG_AT(struct attach_options, follow), .negatable = true,
     .group = "Target", .help = "Child processes too, those there are and those to come."},
    {"python", 0, OPTION_FLAG_AT(struct attach_options, python), .negatable = true,
     .group = "What to record",
     .help = "Python functions in the place of the interpreter's, in processes that are Python."},
    {"pause", 0, OPTION_FLAG_AT(struct attach_options, pause), .group = "Python",
     .help = "Stop a thread of Python while its stack is read, some tenths of a millisecond a "
             "sample: no stack is then rejected because the thread went on. How long the stops "
             "were is told in the notes."},
    {"heap", 0, OPTION_CHOICE_AT(struct attach_options, heap), .placeholder = "MODE",
     .choices = heap_modes, .alone = "exact", .group = "What to record",
     .help = "Allocations from now on, by stack. This brings sonde's library into the process: a "
             "thread of it is stopped for a moment and made to load it, where that is safe. At the "
             "end its hooks are taken out; the library stays and does nothing."},
    {"heap-interval", 0, OPTION_SIZE_AT(struct attach_options, heap_interval),
     .placeholder = "BYTES", .min = 1, .group = "What to record",
     .help = "With --heap=sampled: bytes allocated between two samples, on average."},
    {"agent-memory", 0, OPTION_SIZE_AT(struct attach_options, agent_memory), .placeholder = "BYTES",
     .min = HEAP_MEMORY_MIN, .max = HEAP_MEMORY_MAX, .group = "What to record",
     .help = "With --heap: addresses in each process that the tables may take; beyond, what does "
             "not fit is counted."},
    {"invite", 0, OPTION_TEXT_AT(struct attach_options, invite), .placeholder = "FILE",
     .group = "Target",
     .help = "Write to FILE how the process can take part by itself: import sonde does so."},
    TRACING_OPTIONS(struct attach_options, tracing),
    {0}};

static const struct attach_options defaults = {.record = RECORD_DEFAULTS,
                                               .follow = true,
                                               .python = true,
                                               .heap_interval = HEAP_INTERVAL_DEFAULT,
                                               .agent_memory = HEAP_MEMORY_DEFAULT,
                                               .tracing = TRACING_DEFAULTS};

static int parse_pid(const char *text, pid_t *pid, struct error *err)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*end || end == text || errno || n <= 0 || n > INT32_MAX)
        return error_set(err, FAULT_USAGE, "'%s' is not a process number", text);
    *pid = (pid_t)n;
    return 0;
}

static int run(struct invocation *inv)
{
    struct attach_options *o = inv->options;
    VECTOR(pid_t) pids = {0};
    char name[32];
    struct session_result result = {0};
    int rc = 0;
    for (int i = 0; i < inv->argc && !rc; i++)
        rc = parse_pid(inv->argv[i], vector_push(&pids), &inv->error);
    if (!rc) {
        struct session_options session = {.attach = pids.data, .attach_count = pids.len};
        struct tracing tracing;
        session.perf.threads_only = !o->follow;
        session.no_python = !o->python;
        session.pause = o->pause;
        session.heap = o->heap;
        session.heap_interval = o->heap_interval;
        session.agent_memory = o->agent_memory & ~4095ull;
        session.invite = o->invite;
        snprintf(name, sizeof name, "pid-%d", pids.data[0]);
        rc = tracing_apply(&o->tracing, &tracing, &session, &inv->error);
        if (!rc && !o->invite && (o->tracing.calls || o->tracing.lines.len))
            rc = error_set(&inv->error, FAULT_USAGE,
                           "nothing can be traced in a process that runs already; import sonde in "
                           "it, or start it by sonde run");
        if (!rc)
            rc = record(&o->record, &session, name, &result, &inv->error);
        tracing_release(&tracing);
    }
    vector_release(&pids);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde attach 1234 --duration 10s", "ten seconds of a running process and its children"},
    {"sonde attach $(pidof nginx)", "several at once, until Ctrl-C"},
    {"sonde attach --heap 1234 --duration 1m", "what it allocates and keeps for a minute"},
    {0}};

static const char *const see_also[] = {"run", "report", NULL};

const struct command command_attach = {
    .name = "attach",
    .summary = "Record processes that already run",
    .usage = "[OPTION]... PID...",
    .description =
        "Records the processes with these numbers, their children, and what they start from now "
        "on, until they end, the duration is over, or Ctrl-C. Without --heap nothing is put into "
        "the processes, and without --heap and --pause they are not stopped.",
    .options = options,
    .options_size = sizeof(struct attach_options),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = COMMAND_ANY,
    .operand = "PID",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
