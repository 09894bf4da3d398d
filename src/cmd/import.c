/* sonde import: other tools' files as a recording. */
#include <stdlib.h>

#include "cmd/combine.h"
#include "cmd/command.h"
#include "formats/format.h"

struct import_choices {
    const char *format;
    const char *output;
    bool force;
};

static const struct option options[] = {
    {"format", 'f', OPTION_TEXT_AT(struct import_choices, format), .placeholder = "FORMAT",
     .default_text = "by content",
     .help = "Read FILE as this: pprof, folded, speedscope, chrome-trace, callgrind, perf-data, "
             "perf-script, gperftools-cpu, gperftools-heap, jemalloc-heap or cpuprofile."},
    {"output", 'o', OPTION_TEXT_AT(struct import_choices, output), .placeholder = "FILE",
     .default_text = "the name of the first file with .sonde", .help = "The recording to make."},
    {"force", 0, OPTION_FLAG_AT(struct import_choices, force),
     .help = "Replace the recording if it is there already."},
    {0}};

static const struct command_example examples[] = {
    {"sonde import perf.data -o app.sonde", "keep what perf recorded"},
    {"perf record -o - ./app | sonde import - -o app.sonde", "the same without a file between"},
    {"sonde import cpu.pb.gz heap.pb.gz -o app.sonde", "two profiles in one recording"},
    {0}};

static const char *const see_also[] = {"export", "merge", NULL};

static int choose_format(struct invocation *inv, const char *name, const struct format **out)
{
    *out = name ? format_find(name) : NULL;
    if (!name || (*out && (*out)->read))
        return 0;
    struct text names = TEXT_INIT;
    format_names(false, &names);
    int rc = error_set(&inv->error, FAULT_USAGE, "'%s' is no format that can be read: use %s", name,
                       names.data);
    text_release(&names);
    return rc;
}

static int import_run(struct invocation *inv)
{
    const struct import_choices *chosen = inv->options;
    const struct format *format;
    struct text output = TEXT_INIT;
    int rc = choose_format(inv, chosen->format, &format);
    if (chosen->output)
        text_add(&output, chosen->output);
    else
        text_format(&output, "%s.sonde", strcmp(inv->argv[0], "-") ? inv->argv[0] : "stdin");
    if (!rc)
        rc = combine(inv->argv, inv->argc, format, output.data, chosen->force, &inv->error);
    text_release(&output);
    return rc;
}

const struct command command_import = {
    .name = "import",
    .summary = "Turn other tools' profiles into a recording",
    .usage = "[OPTION]... FILE...",
    .description =
        "Reads every FILE, tells its format by its content, and writes one recording of them all. "
        "It is not needed only to look: report, graph, export and diff open such files themselves.",
    .options = options,
    .options_size = sizeof(struct import_choices),
    .operands_min = 1,
    .operands_max = COMMAND_ANY,
    .operand = "FILE",
    .examples = examples,
    .see_also = see_also,
    .run = import_run,
};
