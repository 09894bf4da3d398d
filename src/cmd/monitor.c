/* sonde monitor: what runs here, by process and thread, on a screen or once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cmd/command.h"
#include "cmd/printing.h"
#include "monitor/record.h"
#include "monitor/screen.h"
#include "monitor/tables.h"
#include "monitor/traffic.h"

#define SECOND 1000000000ull

struct monitor_options {
    bool once, json, csv, tree, threads, kernel, files, sockets, listening, disks, force;
    uint64_t interval, duration, port, top;
    int sort;
    const char *filter, *record;
};

static const char *const sorts[] = {"cpu", "memory", "time", "io", "faults",
                                    "pid", "name",   "net",  NULL};

static const struct option options[] = {
    {"once", '1', OPTION_FLAG_AT(struct monitor_options, once),
     .help = "Look twice, --interval apart, print what was seen, and end."},
    {"json", 0, OPTION_FLAG_AT(struct monitor_options, json), .help = "The same for machines."},
    {"csv", 0, OPTION_FLAG_AT(struct monitor_options, csv),
     .help = "The main table as comma-separated values."},
    {"interval", 'i', OPTION_DURATION_AT(struct monitor_options, interval), .placeholder = "TIME",
     .min = SECOND / 20, .help = "Time between two looks."},
    {"duration", 'd', OPTION_DURATION_AT(struct monitor_options, duration), .placeholder = "TIME",
     .default_text = "until it is left", .help = "End after this time."},
    {"sort", 's', OPTION_CHOICE_AT(struct monitor_options, sort), .choices = sorts,
     .help = "What comes first."},
    {"top", 'n', OPTION_UNSIGNED_AT(struct monitor_options, top), .placeholder = "N",
     .help = "Rows with --once; 0 for all, which --json and --csv show anyway."},
    {"tree", 't', OPTION_FLAG_AT(struct monitor_options, tree), .help = "Children below parents."},
    {"threads", 'H', OPTION_FLAG_AT(struct monitor_options, threads),
     .help = "Threads as well as processes."},
    {"kernel", 'K', OPTION_FLAG_AT(struct monitor_options, kernel),
     .help = "The kernel's own threads as well."},
    {"filter", 0, OPTION_TEXT_AT(struct monitor_options, filter), .placeholder = "TEXT",
     .help = "Only commands that hold TEXT."},
    {"files", 0, OPTION_FLAG_AT(struct monitor_options, files), .group = "Other tables",
     .help = "What the process has open; with --tree also those that it started."},
    {"sockets", 0, OPTION_FLAG_AT(struct monitor_options, sockets), .group = "Other tables",
     .help = "Sockets and who holds them."},
    {"listening", 0, OPTION_FLAG_AT(struct monitor_options, listening), .group = "Other tables",
     .help = "With --sockets: only those that wait for others."},
    {"port", 0, OPTION_UNSIGNED_AT(struct monitor_options, port), .placeholder = "PORT",
     .max = 65535, .group = "Other tables",
     .help = "Who holds this local port; status 1 if nobody does."},
    {"disks", 0, OPTION_FLAG_AT(struct monitor_options, disks), .group = "Other tables",
     .help = "File systems and what is left on them."},
    {"record", 0, OPTION_TEXT_AT(struct monitor_options, record), .placeholder = "FILE",
     .group = "Recording",
     .help = "Keep the curves in a recording; without a terminal that is all."},
    {"force", 'f', OPTION_FLAG_AT(struct monitor_options, force), .group = "Recording",
     .help = "Replace FILE if it exists."},
    {0}};

/* One run of the command. */
struct monitor {
    const struct monitor_options *options;
    struct watch watch;
    struct listing_choice choice;
    pid_t root; /* a PID, or the command */
    bool child; /* the root is the command, ours to wait for */
    int status; /* how it ended */
    bool ended;
    int output; /* what it printed while the screen was in use, or -1 */
    struct watch_record *record;
    uint64_t start;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static int start_command(struct monitor *m, char **argv, bool hide, struct error *err)
{
    m->output = hide ? memfd_create("output", MFD_CLOEXEC) : -1;
    m->root = fork();
    if (m->root < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot start %s", argv[0]);
    if (m->root == 0) {
        if (m->output >= 0 && (dup2(m->output, 1) < 0 || dup2(m->output, 2) < 0))
            _exit(STATUS_NOT_STARTED);
        execvp(argv[0], argv);
        int code = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
        dprintf(2, "sonde monitor: cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(code);
    }
    m->child = true;
    return 0;
}

/* "1234" is a process, anything else a name. */
static int choose(struct monitor *m, const char *word, struct error *err)
{
    char *end;
    errno = 0;
    long pid = strtol(word, &end, 10);
    if (*end || errno || pid <= 0) {
        m->choice.name = word;
        return 0;
    }
    m->root = (pid_t)pid;
    if (pid > INT32_MAX || (kill(m->root, 0) < 0 && errno == ESRCH))
        return error_set(err, FAULT_MISSING, "there is no process %ld", pid);
    return 0;
}

static bool command_has_ended(struct monitor *m)
{
    if (m->child && !m->ended && waitpid(m->root, &m->status, WNOHANG) == m->root)
        m->ended = true;
    return m->ended;
}

static bool is_over(struct monitor *m)
{
    const struct monitor_options *o = m->options;
    if (interrupted || command_has_ended(m))
        return true;
    if (m->root && !watch_find(&m->watch, m->root, m->root))
        return true;
    return o->duration && clock_now() - m->start >= o->duration;
}

static bool looked(void *context, struct watch *w)
{
    struct monitor *m = context;
    if (m->record) {
        struct listing rows = {0};
        struct listing_choice all = m->choice;
        all.tree = true;
        listing_make(&rows, w, &all);
        watch_record_look(m->record, w, &rows);
        listing_release(&rows);
    }
    return is_over(m);
}

static void pause_for(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    nanosleep(&t, NULL);
}

static int print(struct monitor *m, struct error *err)
{
    const struct monitor_options *o = m->options;
    struct view v;
    struct listing rows = {0};
    int rc = 0;
    size_t found = 1;
    bool chosen = m->root || m->choice.name;
    m->choice.alone = chosen && !o->tree && (o->files || o->sockets || o->port);
    listing_make(&rows, &m->watch, &m->choice);
    view_init(&v, "monitor", "",
              o->files                ? "files"
              : o->sockets || o->port ? "sockets"
              : o->disks              ? "mounts"
                                      : "processes");
    if (chosen && !rows.list.len)
        rc = error_set(err, FAULT_MISSING, "no process has \"%s\" in its command", m->choice.name);
    else if (o->files)
        rc = tables_files(&v, &rows, err);
    else if (o->sockets || o->port)
        found = tables_sockets(&v, &m->watch, chosen ? &rows : NULL, o->port, o->listening);
    else if (o->disks)
        tables_mounts(&v);
    else {
        tables_machine(&v, &m->watch);
        tables_processes(&v, &m->watch, &rows, o->json || o->csv ? 0 : o->top);
    }
    if (!rc && !found && o->port)
        rc = error_set(err, FAULT_MISSING, "nobody holds port %llu", (unsigned long long)o->port);
    if (!rc)
        rc = view_print(&v, o->json, o->csv, err);
    view_release(&v);
    listing_release(&rows);
    return rc;
}

/* Details want a look before too: rates are what changed between two. */
static int print_once(struct monitor *m, struct error *err)
{
    const struct monitor_options *o = m->options;
    bool rates = !o->files && !o->sockets && !o->port && !o->disks;
    watch_look(&m->watch);
    if (rates) {
        struct listing rows = {0};
        listing_make(&rows, &m->watch, &m->choice);
        for (size_t i = 0; i < rows.list.len; i++)
            watch_detail(&m->watch, rows.list.data[i].task);
        listing_release(&rows);
        pause_for(o->interval);
        watch_look(&m->watch);
    }
    return print(m, err);
}

static void record_only(struct monitor *m)
{
    for (;;) {
        uint64_t due = clock_now() + m->options->interval, now;
        watch_look(&m->watch);
        if (looked(m, &m->watch))
            return;
        now = clock_now();
        if (now < due)
            pause_for(due - now);
    }
}

/* What the command printed while the screen stood in its way. */
static void give_output(const struct monitor *m)
{
    char part[65536];
    if (m->output < 0)
        return;
    uint64_t at = 0;
    for (ssize_t n; (n = io_pread(m->output, part, sizeof part, at)) > 0; at += (uint64_t)n)
        if (io_write(STDOUT_FILENO, part, (size_t)n))
            break;
    close(m->output);
}

static int finish(struct monitor *m, int rc, struct error *err)
{
    if (m->child && !m->ended && waitpid(m->root, &m->status, 0) == m->root)
        m->ended = true;
    give_output(m);
    if (m->record) {
        int closed = watch_record_close(m->record, rc ? NULL : err);
        rc = rc ? rc : closed;
        if (!rc)
            fprintf(stderr, "sonde: the recording is %s\n", m->options->record);
    }
    watch_release(&m->watch);
    if (rc || !m->ended)
        return rc;
    return WIFEXITED(m->status) ? WEXITSTATUS(m->status) : STATUS_SIGNAL + WTERMSIG(m->status);
}

static int check(const struct invocation *inv, struct error *err)
{
    const struct monitor_options *o = inv->options;
    if (o->files + o->sockets + o->disks + (o->port != 0) > 1 && !(o->sockets && o->port))
        return error_set(err, FAULT_USAGE, "one table at a time: --files, --sockets or --disks");
    if (o->json && o->csv)
        return error_set(err, FAULT_USAGE, "--json and --csv: choose one");
    if (inv->argc > 1 && !inv->set.ended)
        return error_set(err, FAULT_USAGE,
                         "one PID or name; a command to start comes after --: sonde monitor -- %s",
                         inv->argv[0]);
    return 0;
}

static int run(struct invocation *inv)
{
    const struct monitor_options *o = inv->options;
    bool table = o->files || o->sockets || o->port || o->disks;
    bool screen =
        !o->once && !o->json && !o->csv && !table && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    struct monitor m = {.options = o, .output = -1, .start = clock_now()};
    m.choice = (struct listing_choice){.sort = (enum listing_sort)o->sort,
                                       .tree = o->tree,
                                       .kernel = o->kernel,
                                       .filter = o->filter};
    int rc = check(inv, &inv->error);
    if (!rc && inv->argc)
        rc = inv->set.ended ? start_command(&m, inv->argv, screen, &inv->error)
                            : choose(&m, inv->argv[0], &inv->error);
    if (m.root) {
        m.choice.roots = &m.root;
        m.choice.root_count = 1;
    }
    if (!rc && o->record)
        rc = watch_record_open(o->record, o->force, &m.record, &inv->error);
    if (rc && !m.child)
        return rc;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    watch_init(&m.watch, o->threads);
    m.watch.traffic = table ? NULL : traffic_new();
    struct screen_options how = {.rows = m.choice,
                                 .interval = o->interval,
                                 .out = stdout,
                                 .in = stdin,
                                 .looked = looked,
                                 .context = &m};
    if (rc)
        ;
    else if (screen)
        rc = screen_run(&m.watch, &how, &inv->error);
    else if (o->record)
        record_only(&m);
    else
        rc = print_once(&m, &inv->error);
    return finish(&m, rc, &inv->error);
}

static const struct monitor_options defaults = {.interval = SECOND, .top = 30};

static const struct command_example examples[] = {
    {"sonde monitor", "everything that runs, sorted by CPU"},
    {"sonde monitor --tree nginx", "nginx and what it started, as a tree"},
    {"sonde monitor --once --json 1234", "one process and its children, for machines"},
    {"sonde monitor --port 4444", "who holds the busy port"},
    {"sonde monitor --files 1234", "its open files"},
    {"sonde monitor --record day.sonde --interval 10s --duration 24h", "curves of a day"},
    {"sonde monitor --tree -- make -j8", "watch a build"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_NOT_FOUND, "the command was not found"},
    {STATUS_SIGNAL, "plus N: the command was ended by signal N"},
    {0}};

static const char *const see_also[] = {"run", "attach", "stat", NULL};

const struct command command_monitor = {
    .name = "monitor",
    .summary = "Watch processes: CPU, memory, I/O, files, sockets",
    .usage = "[OPTION]... [PID|NAME|-- COMMAND [ARGUMENT]...]",
    .description =
        "Shows every process of this machine, one of them and what it started, those whose command "
        "holds NAME, or a COMMAND that it starts: CPU, memory, disk I/O, faults and switches, "
        "from look to look, with the machine's own figures above. On a terminal it stays until "
        "q is pressed; ? lists the keys. Without one, or with --once, it prints a table.\n\n"
        "PSS and I/O of other users' processes are for root alone; what cannot be seen is shown as "
        "-. With a COMMAND its status is sonde's; what it prints comes after the screen.",
    .options = options,
    .options_size = sizeof(struct monitor_options),
    .defaults = &defaults,
    .operands_max = COMMAND_ANY,
    .operand = "PID",
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
