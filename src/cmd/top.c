/* sonde top: watch a session, or a process, in the terminal. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "capture/rendezvous.h"
#include "cmd/command.h"
#include "cmd/sessions.h"
#include "render/terminal.h"
#include "top/top.h"
#include "base/folders.h"

#define ADDRESS_MAX_BYTES 4096
#define START_TIME 15000000000ull

struct top_options {
    uint64_t interval, count, rows;
};

static const struct option options[] = {
    {"interval", 'i', OPTION_DURATION_AT(struct top_options, interval), .placeholder = "TIME",
     .min = 100000000, .help = "Between two looks."},
    {"count", 'c', OPTION_UNSIGNED_AT(struct top_options, count), .placeholder = "N",
     .default_text = "until the end", .help = "Without a terminal: so many tables."},
    {"rows", 'n', OPTION_UNSIGNED_AT(struct top_options, rows), .placeholder = "N", .min = 1,
     .max = 200, .help = "Without a terminal: rows of each table."},
    {0}};

static const struct top_options defaults = {.interval = 1000000000, .rows = 10};

static const struct command_example examples[] = {
    {"sonde top", "the session that runs, if there is one"},
    {"sonde top 1234", "the session 1234, the one that records process 1234, or that process"},
    {"sonde top http://127.0.0.1:8080/?token=…", "a session elsewhere, through a tunnel"},
    {"sonde top 1234 | head -20", "a table every second"},
    {0}};

static const char *const see_also[] = {"run", "attach", "ctl", NULL};

/* A session of our own, for a process that nobody records. */
struct own {
    pid_t pid;
    char *folder;
};

static int start_own(struct own *o, const char *who, struct error *err)
{
    struct text file = TEXT_INIT;
    int rc = temporary_folder("top", &file, err);
    if (rc)
        return rc;
    o->folder = text_take(&file);
    text_format(&file, "%s/top.sonde", o->folder);
    o->pid = fork();
    if (o->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        setpgid(0, 0); /* Ctrl-C is for us; we tell it */
        execl("/proc/self/exe", "sonde", "attach", "--live", "--quiet", "--no-symbols", "-o",
              file.data, who, (char *)NULL);
        _exit(STATUS_NOT_EXECUTABLE);
    }
    text_release(&file);
    return o->pid < 0 ? error_errno(err, FAULT_SYSTEM, "cannot start a session") : 0;
}

static void end_own(struct own *o)
{
    struct text file = TEXT_INIT;
    if (o->pid > 0) {
        kill(o->pid, SIGINT);
        waitpid(o->pid, NULL, 0);
    }
    if (o->folder) {
        text_format(&file, "%s/top.sonde", o->folder);
        unlink(file.data);
        rmdir(o->folder);
        free(o->folder);
    }
    text_release(&file);
}

static int read_address(pid_t session, char **url, struct error *err)
{
    struct text path = TEXT_INIT;
    rendezvous_path(session, "live", &path);
    int rc = io_slurp(path.data, ADDRESS_MAX_BYTES, url, NULL, err);
    text_release(&path);
    return rc;
}

static int wait_for_own(struct own *o, const char *who, char **url, struct error *err)
{
    for (uint64_t until = clock_now() + START_TIME; clock_now() < until; usleep(50000)) {
        if (read_address(o->pid, url, NULL) == 0)
            return 0;
        if (waitpid(o->pid, NULL, WNOHANG) == o->pid) {
            o->pid = 0;
            return error_set(err, FAULT_MISSING,
                             "process %s cannot be watched; `sonde attach %s` says why", who, who);
        }
    }
    return error_set(err, FAULT_SYSTEM, "the session for process %s did not begin", who);
}

/* The address of what was named: an address, a session, or a process. */
static int find(const char *who, struct own *own, char **url, struct error *err)
{
    struct text path = TEXT_INIT;
    int rc = 0;
    if (who && strstr(who, "://")) {
        *url = memory_strdup(who);
        return 0;
    }
    rc = sessions_find(who, "live", &path, err);
    if (!rc && io_slurp(path.data, ADDRESS_MAX_BYTES, url, NULL, NULL))
        rc = error_set(err, FAULT_MISSING,
                       "that session serves no figures: it was started without --live");
    text_release(&path);
    if (rc != FAULT_MISSING || !who || text_starts(err->text, "that session"))
        return rc;
    *err = (struct error){0};
    rc = start_own(own, who, err);
    return rc ? rc : wait_for_own(own, who, url, err);
}

static int run(struct invocation *inv)
{
    const struct top_options *o = inv->options;
    struct own own = {0};
    struct feed *feed = NULL;
    char *url = NULL;
    const char *term = getenv("TERM");
    bool screen =
        isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term && strcmp(term, "dumb") != 0;
    int rc = find(inv->argc ? inv->argv[0] : NULL, &own, &url, &inv->error);
    if (!rc)
        rc = feed_new(url, o->interval, &feed, &inv->error);
    if (!rc)
        rc = screen ? top_screen(feed, stdin, stdout, &inv->error)
                    : top_plain(feed, stdout, o->count, (unsigned)o->rows,
                                terminal_style_of(STDOUT_FILENO).width, &inv->error);
    feed_free(feed);
    end_own(&own);
    free(url);
    return rc;
}

const struct command command_top = {
    .name = "top",
    .summary = "Watch a session or a process in the terminal",
    .usage = "[OPTION]... [SESSION|PID|URL]",
    .description =
        "Shows what a live session sees, every second: its processes and threads, the functions "
        "that cost most, the hottest path, who holds memory, with curves. A process that no "
        "session records is recorded for as long as it is watched.\n\n"
        "On a terminal, ? lists the keys. Without one, a table is printed every interval.",
    .options = options,
    .options_size = sizeof(struct top_options),
    .defaults = &defaults,
    .operands_max = 1,
    .operand = "SESSION",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
