/* sonde ctl: tell a session that runs what to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/command.h"
#include "cmd/sessions.h"

struct ctl_options {
    uint64_t wait;
};

static const struct option options[] = {{"wait", 0, OPTION_DURATION_AT(struct ctl_options, wait),
                                         .placeholder = "TIME", .min = 1,
                                         .help = "How long to wait for the session's answer."},
                                        {0}};

static const struct ctl_options defaults = {.wait = 10000000000ull};

static const struct command_example examples[] = {
    {"sonde ctl 1234 status", "what session 1234 (or the one that records process 1234) does"},
    {"sonde ctl 1234 mark deployed", "a note in the recording, with its time"},
    {"sonde ctl 1234 stop cpu", "no samples until 'start cpu'"},
    {"sonde ctl 1234 snapshot heap 1240", "who holds what in process 1240 now, as an event"},
    {"sonde ctl 1234 rate 49", "fewer samples from now on"},
    {0}};

static const char *const see_also[] = {"run", "attach", "top", NULL};

static int run(struct invocation *inv)
{
    const struct ctl_options *o = inv->options;
    struct text line = TEXT_INIT, answer = TEXT_INIT, socket = TEXT_INIT;
    int rc = sessions_find(inv->argv[0], "control", &socket, &inv->error);
    for (int i = 1; i < inv->argc; i++)
        text_format(&line, "%s%s", i > 1 ? " " : "", inv->argv[i]);
    for (size_t i = 0; i < line.len; i++)
        if (line.data[i] == '\n')
            line.data[i] = ' ';
    if (!rc)
        rc = control_ask(socket.data, line.data, (unsigned)((o->wait + 999999999) / 1000000000),
                         &answer, &inv->error);
    if (!rc) {
        struct text shown = TEXT_INIT;
        text_add_printable(&shown, answer.data);
        printf("%s\n", shown.data);
        text_release(&shown);
    }
    text_release(&line);
    text_release(&answer);
    text_release(&socket);
    return rc;
}

const struct command command_ctl = {
    .name = "ctl",
    .summary = "Tell a session that runs what to do",
    .usage = "[OPTION]... SESSION|PID COMMAND [ARGUMENT]...",
    .description =
        "SESSION is the process number of a sonde that records; that of a process it records "
        "leads to it as well. The answer says what was done; the status is 1 if it was not.\n\n"
        "start, stop and snapshot take cpu or heap, and may be followed by a process number: "
        "without, all processes are meant. A snapshot of the heap is kept in the recording as an "
        "event of its own; a snapshot of cpu sees to it that all samples up to now are in the "
        "file. rate HZ changes how often the CPU is sampled. mark TEXT leaves a note with the "
        "time. status tells what is true now, as JSON.",
    .options = options,
    .options_size = sizeof(struct ctl_options),
    .defaults = &defaults,
    .operands_min = 2,
    .operands_max = COMMAND_ANY,
    .operand = "SESSION",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
