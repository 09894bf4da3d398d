/*
 * The command table, and what must hold before any command runs: descriptors 0 to
 * 2 are open, running out of memory ends with a sentence, and a closed pipe is an
 * error of write() and not the end of the process.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/late.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "cmd/dispatch.h"

extern const struct command command_run;
extern const struct command command_attach;
extern const struct command command_ctl;
extern const struct command command_top;
extern const struct command command_report;
extern const struct command command_graph;
extern const struct command command_diff;
extern const struct command command_symbolize;
extern const struct command command_export;
extern const struct command command_import;
extern const struct command command_merge;
extern const struct command command_serve;
extern const struct command command_job;
extern const struct command command_push;
extern const struct command command_stat;
extern const struct command command_list;
extern const struct command command_monitor;
extern const struct command command_bench;
extern const struct command command_doctor;
extern const struct command command_verify;
extern const struct command command_help;

/* In the order in which `sonde --help` lists them. */
static const struct command *const commands[] = {
    // clang-format off
    &command_run,
    &command_attach,
    &command_top,
    &command_ctl,
    &command_report,
    &command_graph,
    &command_diff,
    &command_symbolize,
    &command_export,
    &command_import,
    &command_merge,
    &command_serve,
    &command_job,
    &command_push,
    &command_stat,
    &command_list,
    &command_monitor,
    &command_bench,
    &command_doctor,
    &command_verify,
    &command_help,
    NULL,
    // clang-format on
};

static void out_of_memory(size_t size)
{
    char line[80];
    int len = snprintf(line, sizeof line, "sonde: out of memory (%zu bytes more wanted)\n", size);
    if (write(STDERR_FILENO, line, (size_t)len) < 0)
        _exit(STATUS_FAILED); /* nobody left to tell */
    _exit(STATUS_FAILED);
}

/* As the loader says it of the libraries that it loads at the start. */
static void missing_library(const char *library, const char *why)
{
    fprintf(stderr, "sonde: cannot load %s, which this needs: %s; install it\n", library, why);
    _exit(STATUS_NOT_FOUND);
}

static void ignore(int number)
{
    (void)number;
}

/* A closed pipe and a file that may not grow are errors of write like any other. A handler and not
 * SIG_IGN: exec gives the programs we start the default again. What our own caller ignores stays
 * ignored, as it would be for them without us. */
static void tame_writes(void)
{
    static const int numbers[] = {SIGPIPE, SIGXFSZ};
    struct sigaction old, new = {.sa_handler = ignore, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &new, NULL);
}

/* Else the first file we open would become standard output. Closed again on exec. */
static void open_missing_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
            _exit(STATUS_FAILED);
}

int main(int argc, char **argv)
{
    memory_set_handler(out_of_memory);
    late_set_handler(missing_library);
    open_missing_streams();
    tame_writes();
    return dispatch(commands, argc, argv);
}
