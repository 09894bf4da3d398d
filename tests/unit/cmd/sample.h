/* A made-up command with one option of every kind, for the tests of the frame. */
#ifndef SONDE_TEST_SAMPLE_H
#define SONDE_TEST_SAMPLE_H

#include "cmd/command.h"

struct sample_options {
    bool follow, quick;
    uint64_t rate, duration, size;
    double budget, factor;
    const char *output;
    struct option_list events;
    int kind;
};

static const char *const sample_kinds[] = {"flame", "tree", "table", NULL};

static const struct option sample_table[] = {
    {"rate", 'r', OPTION_UNSIGNED_AT(struct sample_options, rate), .placeholder = "HZ", .min = 1,
     .max = 4000, .suffix = true, .group = "Sampling", .help = "Samples a second."},
    {"duration", 'd', OPTION_DURATION_AT(struct sample_options, duration), .placeholder = "TIME",
     .group = "Sampling", .help = "Stop after this time."},
    {"size", 0, OPTION_SIZE_AT(struct sample_options, size), .placeholder = "SIZE", .min = 4096,
     .help = "Buffer a thread."},
    {"budget", 0, OPTION_PERCENT_AT(struct sample_options, budget), .placeholder = "PERCENT",
     .low = 0.1, .high = 100, .help = "Cost at most."},
    {"factor", 0, OPTION_DOUBLE_AT(struct sample_options, factor), .help = "Multiply by it."},
    {"output", 'o', OPTION_TEXT_AT(struct sample_options, output), .placeholder = "FILE",
     .help = "Write to FILE."},
    {"event", 'e', OPTION_LIST_AT(struct sample_options, events), .placeholder = "EVENT",
     .group = "Sampling", .help = "Count this."},
    {"kind", 'k', OPTION_CHOICE_AT(struct sample_options, kind), .placeholder = "KIND",
     .choices = sample_kinds, .help = "What to draw."},
    {"follow", 'f', OPTION_FLAG_AT(struct sample_options, follow), .negatable = true,
     .help = "Follow forks."},
    {"quick", 'q', OPTION_FLAG_AT(struct sample_options, quick), .help = "Be quick."},
    {0}};

static const struct sample_options sample_defaults = {
    .follow = true, .rate = 99, .duration = 10000000000, .budget = 1, .kind = 1};

static const struct command_example sample_examples[] = {{"sonde sample -- ./app", "try it"}, {0}};

static const struct command sample_command = {
    .name = "sample",
    .summary = "Take a sample",
    .usage = "[OPTION]... [--] COMMAND",
    .description = "One.\n\n.Two 'quoted' \\ and long-dashed, which must not become a request.",
    .options = sample_table,
    .options_size = sizeof(struct sample_options),
    .defaults = &sample_defaults,
    .operands_max = COMMAND_ANY,
    .examples = sample_examples,
};

static const struct command *const sample_commands[] = {&sample_command, NULL};

#endif
