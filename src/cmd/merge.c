/* sonde merge: several recordings as one. */
#include "cmd/combine.h"
#include "cmd/command.h"

struct merge_choices {
    const char *output;
    bool force;
};

static const struct option options[] = {{"output", 'o',
                                         OPTION_TEXT_AT(struct merge_choices, output),
                                         .placeholder = "FILE", .help = "The recording to make."},
                                        {"force", 0, OPTION_FLAG_AT(struct merge_choices, force),
                                         .help = "Replace FILE if it is there already."},
                                        {0}};

static const struct command_example examples[] = {
    {"sonde merge host1.sonde host2.sonde -o both.sonde", "one view of two machines"}, {0}};

static const char *const see_also[] = {"import", "export", NULL};

static int merge_run(struct invocation *inv)
{
    const struct merge_choices *chosen = inv->options;
    if (!chosen->output)
        return error_set(&inv->error, FAULT_USAGE,
                         "where to? Name the recording to make with -o FILE");
    return combine(inv->argv, inv->argc, NULL, chosen->output, chosen->force, &inv->error);
}

const struct command command_merge = {
    .name = "merge",
    .summary = "Make one recording of several",
    .usage = "-o FILE RECORDING RECORDING...",
    .description =
        "Adds recordings, or files of other tools, up into one. Processes stay apart even if their "
        "numbers are equal; code that is the same becomes one, and so do events of the same name. "
        "Times of different machines are aligned by their wall clocks. Of several peaks of the "
        "heap "
        "the highest stays.",
    .options = options,
    .options_size = sizeof(struct merge_choices),
    .operands_min = 2,
    .operands_max = COMMAND_ANY,
    .operand = "RECORDING",
    .examples = examples,
    .see_also = see_also,
    .run = merge_run,
};
