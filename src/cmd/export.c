/* sonde export: a recording, or any profile that can be read, as another tool's file. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "formats/sink_file.h"

struct export_choices {
    const char *format;
    const char *output;
    const char *event;
    unsigned weight;
    bool by_process, by_thread, force, interpreter;
    double min;
    uint64_t from, to;
};

static const char *const weights[] = {"automatic", "samples", "value", NULL};

static const struct option options[] = {
    {"format", 'f', OPTION_TEXT_AT(struct export_choices, format), .placeholder = "FORMAT",
     .default_text = "by the ending of FILE",
     .help = "What to write: pprof (for 'go tool pprof' and most servers), folded (for flame graph "
             "scripts), speedscope, chrome-trace (for Perfetto), gecko (for the Firefox Profiler), "
             "callgrind (for KCachegrind), dot (for Graphviz), perf (for 'perf report'), "
             "perf-script, json (all there is), csv (a row a stack), massif (for ms_print) or "
             "heaptrack (as heaptrack_print prints)."},
    {"output", 'o', OPTION_TEXT_AT(struct export_choices, output), .placeholder = "FILE",
     .help = "Where to write; '-' is standard output."},
    {"force", 0, OPTION_FLAG_AT(struct export_choices, force),
     .help = "Replace FILE if it is there already."},
    {"event", 'e', OPTION_TEXT_AT(struct export_choices, event), .placeholder = "NAME",
     .default_text = "all, or cpu where a format holds but one",
     .help = "Write the values of this event alone; wall is cpu and every off-cpu together."},
    {"weight", 0, OPTION_CHOICE_AT(struct export_choices, weight), .placeholder = "WHAT",
     .choices = weights,
     .help =
         "What a stack's number is, in formats that have one number: how many samples, or the "
         "sum of their values (nanoseconds, bytes). Automatic is bytes for memory, time for waits "
         "and wall time, and samples for everything else."},
    {"by-process", 0, OPTION_FLAG_AT(struct export_choices, by_process),
     .help = "Folded: put the process before the first frame."},
    {"by-thread", 0, OPTION_FLAG_AT(struct export_choices, by_thread),
     .help = "Folded: put the thread before the first frame."},
    {"min", 0, OPTION_PERCENT_AT(struct export_choices, min), .placeholder = "PERCENT", .low = 0,
     .high = 100, .default_text = "0.5%",
     .help = "dot: leave out functions and calls below this part of the whole."},
    {"from", 0, OPTION_DURATION_AT(struct export_choices, from), .placeholder = "TIME",
     .help = "Leave out what came before, counted from the start of the recording."},
    {"to", 0, OPTION_DURATION_AT(struct export_choices, to), .placeholder = "TIME",
     .default_text = "the end", .help = "Leave out what came after."},
    {"interpreter", 0, OPTION_FLAG_AT(struct export_choices, interpreter),
     .help = "Write what leads from one Python function to the next inside the interpreter too."},
    {0}};

static const struct export_choices defaults = {.output = "-"};

static const struct command_example examples[] = {
    {"sonde export app.sonde -o app.pb.gz && go tool pprof -http : app.pb.gz", "look with pprof"},
    {"sonde export app.sonde -f folded | flamegraph.pl > app.svg", "draw with a script"},
    {"sonde export app.sonde -f perf -o app.data && perf report -i app.data", "look with perf"},
    {"sonde export perf.txt -f pprof -o perf.pb.gz", "turn one foreign format into another"},
    {0}};

static const char *const see_also[] = {"import", "merge", NULL};

static int choose_format(struct invocation *inv, const struct export_choices *chosen,
                         const struct format **out)
{
    struct text names = TEXT_INIT;
    const struct format *f =
        chosen->format ? format_find(chosen->format) : format_for_path(chosen->output);
    int rc = 0;
    format_names(true, &names);
    if (chosen->format && (!f || !f->write))
        rc = error_set(&inv->error, FAULT_USAGE, "'%s' is no format that can be written: use %s",
                       chosen->format, names.data);
    else if (!f)
        rc = error_set(&inv->error, FAULT_USAGE,
                       "which format? Name it with --format (%s), or by the ending of the file "
                       "after -o",
                       names.data);
    else if (f->binary && !strcmp(chosen->output, "-") && isatty(STDOUT_FILENO))
        rc = error_set(&inv->error, FAULT_USAGE,
                       "%s is binary and not for a terminal: name a file with -o", f->name);
    text_release(&names);
    *out = f;
    return rc;
}

static int find_event(struct invocation *inv, const struct profile *p, const char *name,
                      uint32_t *event)
{
    *event = name ? profile_event_find(p, name) : PROFILE_NONE;
    if (!name || *event != PROFILE_NONE)
        return 0;
    struct text known = TEXT_INIT;
    for (size_t i = 0; i < p->events.len; i++)
        text_format(&known, "%s%s", i ? ", " : "", profile_text(p, p->events.data[i].name));
    int rc = error_set(&inv->error, FAULT_MISSING, "%s has no event '%s'; it has: %s", inv->argv[0],
                       name, known.len ? known.data : "none");
    text_release(&known);
    return rc;
}

static int write_profile(struct invocation *inv, const struct profile *p,
                         const struct format *format)
{
    const struct export_choices *chosen = inv->options;
    struct export_options how = {.weight = (enum weight)chosen->weight,
                                 .by_process = chosen->by_process,
                                 .by_thread = chosen->by_thread,
                                 .min = chosen->min};
    struct sink_file *file;
    int rc = find_event(inv, p, chosen->event, &how.event);
    if (!rc)
        rc = sink_file_new(chosen->output, chosen->force, &file, &inv->error);
    if (rc)
        return rc;
    struct progress progress;
    progress_begin(&progress, "writing");
    progress.wanted &= strcmp(chosen->output, "-") != 0 || !isatty(STDOUT_FILENO);
    sink_file_watch(file, progress_show, &progress);
    rc = format->write(p, &how, sink_file_sink(file), &inv->error);
    if (!rc)
        rc = sink_finish(sink_file_sink(file), &inv->error);
    progress_end(&progress);
    bool abandoned = sink_file_abandoned(file);
    if (rc)
        sink_file_free(file, false, NULL);
    else
        rc = sink_file_free(file, true, &inv->error);
    if (!abandoned)
        return rc;
    inv->error.fault = FAULT_NONE;
    return STATUS_SIGNAL + SIGPIPE;
}

/* The mark of a stack that could not be followed to its end is no frame. */
static bool is_cut(const struct profile *p, const struct profile_frame *f)
{
    const struct profile_location *at = &p->locations.data[f->first_location];
    return f->location_count == 1 &&
           !strcmp(profile_text(p, p->functions.data[at->function].name), "[cut]");
}

/* Says so if frames on stacks have no address, for formats that can hold no others. */
static void tell_left_out(const struct profile *p)
{
    for (size_t i = 1; i < p->stacks.len; i++) {
        const struct profile_frame *f = &p->frames.data[p->stacks.data[i].frame];
        if (!f->address && !is_cut(p, f)) {
            fputs("sonde export: frames without an address (of Python and others that are known by "
                  "name alone) are left out\n",
                  stderr);
            return;
        }
    }
}

static int export_run(struct invocation *inv)
{
    const struct export_choices *chosen = inv->options;
    const struct format *format;
    int rc = choose_format(inv, chosen, &format);
    if (rc)
        return rc;
    struct profile p;
    struct load_options load = {.from = chosen->from,
                                .to = chosen->to,
                                .hide_interpreter = !chosen->interpreter,
                                .keep_samples = true,
                                .keep_spans = format->timed,
                                .samples_apart = true};
    profile_init(&p);
    rc = reading_open(inv->argv[0], NULL, &load, &p, &inv->error);
    if (!rc && chosen->event && !strcmp(chosen->event, "wall") &&
        profile_event_find(&p, "wall") == PROFILE_NONE)
        rc = profile_join_wall(&p, &inv->error);
    if (!rc)
        rc = profile_settle(&p, &inv->error);
    if (!rc)
        rc = write_profile(inv, &p, format);
    if (!rc && format->by_address)
        tell_left_out(&p);
    profile_release(&p);
    return rc;
}

const struct command command_export = {
    .name = "export",
    .summary = "Write a recording as another tool's file",
    .usage = "[OPTION]... RECORDING",
    .description = "Writes RECORDING, which may also be a file of another tool that sonde reads, "
                   "in the format "
                   "that FORMAT names.",
    COMMAND_OPTIONS(struct export_choices),
    COMMAND_OPERANDS(1, 1, "RECORDING"),
    .examples = examples,
    .see_also = see_also,
    .run = export_run,
};
