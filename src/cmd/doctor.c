/* sonde doctor: what works here and why not. */
#include "capture/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/printing.h"

struct doctor_options {
    bool json;
    const char *redis;
};

static const struct option options[] = {
    {"json", 0, OPTION_FLAG_AT(struct doctor_options, json), .help = "JSON."},
    {"redis", 0, OPTION_TEXT_AT(struct doctor_options, redis), .placeholder = "HOST:PORT",
     .help = "Which Redis to look for."},
    {0}};

static const struct doctor_options defaults = {.redis = "127.0.0.1:6379"};

static const struct view_column columns[] = {
    {"subject", "what", VIEW_TEXT},
    {"state", "is", VIEW_TEXT},
    {"why", "because", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_END},
    {"instead", "instead", VIEW_TEXT, VIEW_MACHINES},
    {"cure", "cure", VIEW_TEXT, VIEW_MACHINES},
};

static const char *const states[] = {
    [DOCTOR_WELL] = "well", [DOCTOR_LIMITED] = "limited", [DOCTOR_MISSING] = "missing"};

static void show(struct view *v, const struct doctor *d)
{
    struct view_section *s =
        view_add_table(v, "findings", "", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < d->findings.len; i++) {
        const struct doctor_finding *f = &d->findings.data[i];
        struct view_value *row = view_row(s, 0, f->state == DOCTOR_WELL ? VIEW_PLAIN : VIEW_STRONG);
        row[0] = view_text(s, f->subject);
        row[1] = view_text(s, states[f->state]);
        row[2] = view_text(s, f->why);
        row[3] = view_text(s, f->instead);
        row[4] = view_text(s, f->cure);
    }
    s = view_add(v, VIEW_NOTES, "notes", "What follows");
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < d->findings.len; i++) {
        const struct doctor_finding *f = &d->findings.data[i];
        if (f->state == DOCTOR_WELL)
            continue;
        text_clear(&t);
        text_format(&t, "%s %s: %s. sonde %s. Better: %s", f->subject, states[f->state], f->why,
                    f->instead, f->cure);
        view_note(s, f->state == DOCTOR_MISSING ? NOTE_WARNING : NOTE_INFO, t.data);
    }
    text_release(&t);
}

static int examine(struct doctor *d, const char *target, struct error *err)
{
    char *end;
    errno = 0;
    long pid = strtol(target, &end, 10);
    if (end == target || *end)
        return doctor_binary(d, target, err);
    if (errno || pid <= 0 || pid > INT32_MAX)
        return error_set(err, FAULT_USAGE, "'%s' is not a process number", target);
    return doctor_process(d, (pid_t)pid, err);
}

static int run(struct invocation *inv)
{
    const struct doctor_options *o = inv->options;
    struct doctor d = {0};
    struct view v;
    doctor_machine(&d);
    doctor_redis(&d, o->redis);
    int rc = inv->argc ? examine(&d, inv->argv[0], &inv->error) : 0;
    if (!rc) {
        view_init(&v, "doctor", "", "findings");
        show(&v, &d);
        rc = view_print(&v, o->json, false, &inv->error);
        view_release(&v);
    }
    doctor_release(&d);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde doctor", "what this machine and user allow"},
    {"sonde doctor ./app", "whether a program will show names, lines and stacks"},
    {"sonde doctor 1234", "the same of a process that runs"},
    {0}};

static const char *const see_also[] = {"run", "attach", "stat", NULL};

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Tell what works here, why not, and what would help",
    .usage = "[OPTION]... [PID|PROGRAM]",
    .description =
        "Looks at what sonde needs: perf events, the PMU, capabilities, ptrace, BPF, control "
        "groups, valgrind, a Redis; and, of a program or process, its names, lines, stacks, "
        "linking, rights, and which Python it is. For each "
        "shortfall it says what sonde will do in its place, and what would enable better.",
    .options = options,
    .options_size = sizeof(struct doctor_options),
    .defaults = &defaults,
    .operands_max = 1,
    .operand = "TARGET",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
