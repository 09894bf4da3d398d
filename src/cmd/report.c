/* `sonde report`: tables from a recording, for people or as JSON and CSV. */
#include <stdlib.h>
#include <string.h>

#include "analyze/calls.h"
#include "analyze/heap.h"
#include "analyze/report.h"
#include "base/io.h"
#include "cmd/command.h"
#include "cmd/filter.h"
#include "cmd/printing.h"
#include "cmd/reading.h"
#include "cmd/spelling.h"
#include "render/excerpt.h"

#define SCREEN_TOP 8
#define TABLE_TOP 40
#define SUPPRESSIONS_MAX (1 << 20)

struct report_options {
    struct filter filter;
    uint64_t top, depth;
    double min;
    bool tree, lines, threads, processes, modules, notes, calls;
    bool heap, leaks, mem_lines, peaks, fail_on_leak;
    bool sizes, ownership, ages;
    bool under_peak; /* the calls under one peak, at `at` */
    uint64_t at;
    const char *suppress, *between;
    struct peaks_options peak;
    const char *callers, *callees;
    int sort;
    bool json, csv;
};

static const struct report_options defaults = {.filter = FILTER_DEFAULTS, .min = 1};

/* The last three are what users of Python's profilers call the first ones. */
static const char *const sorts[] = {"self",    "total",   "name",   "samples",
                                    "tottime", "cumtime", "ncalls", NULL};
static const enum report_sort sorted_by[] = {REPORT_BY_SELF,    REPORT_BY_TOTAL, REPORT_BY_NAME,
                                             REPORT_BY_SAMPLES, REPORT_BY_SELF,  REPORT_BY_TOTAL,
                                             REPORT_BY_SAMPLES};

#define AT(kind, field) OPTION_##kind##_AT(struct report_options, field)

static const struct option options[] = {
    {"tree", 0, AT(FLAG, tree), .group = "Tables", .help = "The call tree, top down."},
    {"callers", 0, AT(TEXT, callers), .placeholder = "FUNCTION", .group = "Tables",
     .help = "Who calls FUNCTION, as a tree. Its name, the name without parameters, or a part."},
    {"callees", 0, AT(TEXT, callees), .placeholder = "FUNCTION", .group = "Tables",
     .help = "What FUNCTION calls, as a tree."},
    {"lines", 0, AT(FLAG, lines), .group = "Tables",
     .help = "Source lines by cost; with a FUNCTION after the recording, that function line by "
             "line. The text is shown if the source can be read here."},
    {"calls", 0, AT(FLAG, calls), .group = "Tables",
     .help = "Every function that was called and how often, of a recording made with --trace: "
             "ncalls (recursive ones as all/outermost), its own time, and with what it called."},
    {"threads", 0, AT(FLAG, threads), .group = "Tables",
     .help =
         "Threads, as sampled and as the kernel counted; with --heap what each held over time."},
    {"processes", 0, AT(FLAG, processes), .group = "Tables", .help = "The whole process tree."},
    {"modules", 0, AT(FLAG, modules), .group = "Tables",
     .help = "Programs and libraries, and which of them lack symbols."},
    {"notes", 0, AT(FLAG, notes), .group = "Tables",
     .help = "All that the recorder had to say, and what it cost."},
    {"heap", 0, AT(FLAG, heap), .group = "Memory",
     .help = "The screen of the heap: its peak and who held it, what was not freed, what was freed "
             "at once. Of recordings made with --heap, as all of these."},
    {"leaks", 0, AT(FLAG, leaks), .group = "Memory",
     .help = "What processes that ended by themselves had not freed, by stack."},
    {"fail-on-leak", 0, AT(FLAG, fail_on_leak), .group = "Memory",
     .help = "With --leaks: exit status 4 if there is one."},
    {"suppress", 0, AT(TEXT, suppress), .placeholder = "FILE", .group = "Memory",
     .help = "With --leaks: what is none. A line is the name of a function that is on the stack, "
             "or of the module that asked for the memory (*, ? and [] match); # starts a "
             "comment."},
    {"mem-lines", 0, AT(FLAG, mem_lines), .group = "Memory",
     .help = "Source lines by the bytes that they held at the peak, or by another --event; with a "
             "FUNCTION after the recording, that function line by line."},
    {"peaks", 0, AT(FLAG, peaks), .group = "Memory",
     .help = "The peaks of all processes together over time."},
    {"peak-size", 0, AT(SIZE, peak.size), .placeholder = "BYTES", .group = "Memory",
     .default_text = "a tenth of the highest", .help = "With --peaks: how high one must be."},
    {"peak-gap", 0, AT(DURATION, peak.gap), .placeholder = "TIME", .group = "Memory",
     .default_text = "0", .help = "With --peaks: how far apart; of nearer ones the higher counts."},
    {"peak-delta", 0, AT(SIZE, peak.delta), .placeholder = "BYTES", .group = "Memory",
     .default_text = "a twentieth of the highest",
     .help = "With --peaks: how far it must fall before there can be another."},
    {"at", 0, AT(DURATION, at), .placeholder = "TIME", .group = "Memory",
     .help = "With --heap: what was held that long after the start. With --from and --to instead: "
             "what stacks allocated in between and had not freed at its end. With --peaks and "
             "--event N: the calls under peak N."},
    {"between", 0, AT(TEXT, between), .placeholder = "MARK,MARK", .group = "Memory",
     .help = "With --heap: what was allocated between two marks that the program set (sonde.mark, "
             "sonde_mark) and not freed by the second."},
    {"sizes", 0, AT(FLAG, sizes), .group = "Memory",
     .help = "How often which sizes were asked for, in all and by stack."},
    {"ownership", 0, AT(FLAG, ownership), .group = "Memory",
     .help = "Which thread freed what which had allocated, and the stacks whose blocks are freed "
             "elsewhere."},
    {"ages", 0, AT(FLAG, ages), .group = "Memory",
     .help = "How old what was live at the end was, and what was freed soon."},
    {"top", 'n', AT(UNSIGNED, top), .placeholder = "N", .suffix = true, .group = "Shape",
     .default_text = "8 on the first screen, 40 in tables, all in JSON and CSV",
     .help = "Rows of a table; 0 for all."},
    {"sort", 's', AT(CHOICE, sort), .placeholder = "BY", .choices = sorts, .group = "Shape",
     .help = "What comes first in functions, modules, threads and lines."},
    {"min", 0, AT(PERCENT, min), .placeholder = "PCT", .high = 100, .group = "Shape",
     .help = "Branches of trees below PCT of the whole are gathered up."},
    {"depth", 0, AT(UNSIGNED, depth), .placeholder = "N", .group = "Shape", .default_text = "all",
     .max = 100000, .help = "Levels of trees."},
    {"json", 0, AT(FLAG, json), .group = "Shape",
     .help = "JSON: everything on the screen and more, numbers as they are."},
    {"csv", 0, AT(FLAG, csv), .group = "Shape", .help = "CSV of the main table."},
    FILTER_OPTIONS(struct report_options, filter),
    {0}};

static const struct command_example examples[] = {
    {"sonde report app.sonde", "what ran, where the time went, what to look at next"},
    {"sonde report app.sonde --callers memcpy", "who calls memcpy"},
    {"sonde report app.sonde --lines parse", "the source of parse, line by line"},
    {"sonde report app.sonde --event wall --tree", "running and waiting time, as a call tree"},
    {"sonde report app.sonde --heap", "its memory: the peak, what was not freed"},
    {"sonde report app.sonde --leaks --fail-on-leak", "exit status 4 if something was not freed"},
    {"sonde report app.sonde --json | jq '.sections.functions.rows[0]'",
     "the dearest function, for a script"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_LEAKED, "with --fail-on-leak: something was not freed"}, {0}};

static const char *const see_also[] = {"run", "graph", "export", "symbolize", NULL};

/* Puts the nearest name after the sentence: "did you mean parse_line?" */
static void add_nearest(const struct tree *t, const char *function, struct error *err)
{
    struct spelling spelling;
    spelling_init(&spelling, function);
    for (size_t i = 0; i < t->symbols.len; i++)
        if (t->symbols.data[i].level == TREE_CODE)
            spelling_offer(&spelling, t->symbols.data[i].name);
    const char *nearest = spelling_nearest(&spelling);
    if (nearest)
        error_set(err, FAULT_MISSING, "no function \"%s\" in what is selected; did you mean %s?",
                  function, nearest);
    else
        error_set(err, FAULT_MISSING,
                  "no function \"%s\" in what is selected; `sonde report FILE --top 0` lists all",
                  function);
}

static bool of_heap(const struct report_options *o)
{
    return o->heap || o->leaks || o->mem_lines || o->peaks || o->sizes || o->ownership || o->ages;
}

/* A part of the run's time, of which only the history tells. */
static bool of_span(const struct report_options *o)
{
    return o->heap && (o->at || o->filter.from || o->filter.to);
}

/* --peaks --event N */
static bool of_peak(const struct report_options *o)
{
    return o->peaks && o->filter.events.len == 1;
}

/* A recording of nothing but allocations shows them first. */
static bool heap_screen(const struct profile *p, const struct report_options *o)
{
    return !o->filter.events.len && heap_alone(p);
}

/* Lines that were counted are shown as such, unless it is another event that is asked for. */
static bool counted(const struct profile *p, const struct report_options *o)
{
    return !o->filter.events.len && report_lines_counted(p);
}

static int make_leaks(struct view *v, const struct report *r, const struct report_options *o,
                      struct error *err)
{
    char *text = NULL;
    int rc = o->suppress ? io_slurp(o->suppress, SUPPRESSIONS_MAX, &text, NULL, err) : 0;
    if (rc)
        return rc;
    struct suppressions quiet;
    suppressions_init(&quiet);
    if (text)
        suppressions_add(&quiet, text);
    if (report_leaks(v, r, &quiet) && o->fail_on_leak)
        rc = STATUS_LEAKED;
    suppressions_release(&quiet);
    free(text);
    return rc;
}

/* The one table that was asked for, or the overview. Returns a fault or an exit status. */
static int make_view(struct view *v, const struct report *r, const struct invocation *inv,
                     struct error *err)
{
    const struct report_options *o = inv->options;
    const char *function = o->callers      ? o->callers
                           : o->callees    ? o->callees
                           : inv->argc > 1 ? inv->argv[1]
                                           : NULL;
    int rc = 0;
    if (o->callers)
        rc = report_callers(v, r, function, err);
    else if (o->callees)
        rc = report_callees(v, r, function, err);
    else if (o->lines && counted(r->selection->profile, o))
        rc = report_counted_lines(v, r, function, err);
    else if (o->lines || o->mem_lines)
        rc = report_lines(v, r, function, err);
    else if (o->calls)
        report_calls(v, r);
    else if (o->tree)
        report_tree(v, r);
    else if (o->threads && o->heap)
        report_heap_threads(v, r);
    else if (o->threads)
        report_threads(v, r);
    else if (o->processes)
        report_processes(v, r);
    else if (o->modules)
        report_modules(v, r);
    else if (o->notes)
        report_notes(v, r);
    else if (of_span(o) || o->under_peak)
        report_held(v, r, o->filter.from, o->at ? o->at : o->filter.to, o->under_peak);
    else if (o->sizes)
        report_sizes(v, r);
    else if (o->ownership)
        report_ownership(v, r);
    else if (o->ages)
        report_ages(v, r);
    else if (o->peaks)
        report_peaks(v, r, &o->peak);
    else if (o->leaks)
        rc = make_leaks(v, r, o, err);
    else if (o->heap || heap_screen(r->selection->profile, o))
        report_heap(v, r);
    else
        report_overview(v, r);
    if (rc == FAULT_MISSING && function)
        add_nearest(r->tree, function, err);
    return rc;
}

static uint64_t top_of(const struct invocation *inv)
{
    const struct report_options *o = inv->options;
    bool table = o->lines || o->mem_lines || o->leaks || o->peaks || o->threads || o->processes ||
                 o->modules || o->ownership || o->calls;
    if (invocation_given(inv, "top"))
        return o->top;
    return o->json || o->csv ? 0 : table ? TABLE_TOP : SCREEN_TOP;
}

/* What is looked at; of the heap its peak, if no other event is asked for. */
static int choose(const struct report_options *o, const struct profile *p, struct selection *s,
                  struct error *err)
{
    int rc = filter_select(&o->filter, p, s, err);
    if (rc || (!o->mem_lines && !o->calls) || o->filter.events.len)
        return rc;
    struct selection all = *s;
    selection_init_event(s, &all, o->calls ? "calls" : heap_peak_event(&all));
    selection_release(&all);
    return 0;
}

static int show(struct invocation *inv, const struct profile *p)
{
    const struct report_options *o = inv->options;
    struct selection selection;
    struct tree tree;
    struct view view = {0};
    int rc = choose(o, p, &selection, &inv->error);
    if (rc)
        return rc;
    tree_init(&tree, &selection, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    struct excerpt *source = excerpt_new();
    struct report r = {.selection = &selection,
                       .tree = &tree,
                       .file = inv->argv[0],
                       .top = top_of(inv),
                       .from = o->filter.from,
                       .to = o->filter.to,
                       .sort = sorted_by[o->sort],
                       .min = o->min,
                       .depth = (uint32_t)o->depth,
                       .source = excerpt_line,
                       .source_context = source};
    rc = make_view(&view, &r, inv, &inv->error);
    if (rc >= 0) {
        int printed = view_print(&view, o->json, o->csv, &inv->error);
        rc = printed ? printed : rc;
    }
    /* A table without a single sample is an answer, but not the one that was asked for. */
    if (!rc && selection_empty(&selection) && !o->notes && !of_heap(o) && !heap_alone(p)) {
        error_set(&inv->error, FAULT_MISSING,
                  "%s has no samples to show%s; `sonde report --notes` tells what the recorder met",
                  inv->argv[0], p->cells.len ? " in what was selected" : "");
        rc = STATUS_FAILED;
    }
    excerpt_free(source);
    view_release(&view);
    tree_release(&tree);
    selection_release(&selection);
    return rc;
}

static int check(const struct invocation *inv, struct error *err)
{
    const struct report_options *o = inv->options;
    int tables = o->tree + o->lines + o->threads + o->processes + o->modules + o->notes +
                 (o->callers != NULL) + (o->callees != NULL) + o->calls + o->heap + o->leaks +
                 o->mem_lines + o->peaks + o->sizes + o->ownership + o->ages;
    tables -= o->heap && o->threads; /* what threads hold */
    if (tables > 1)
        return error_set(
            err, FAULT_USAGE,
            "one table at a time: choose one of --tree, --callers, --callees, --lines, --threads, "
            "--processes, --modules, --notes, --calls, --heap, --leaks, --mem-lines, --peaks, "
            "--sizes, --ownership and --ages");
    if (of_heap(o) && !o->mem_lines && o->filter.events.len && !of_peak(o))
        return error_set(err, FAULT_USAGE,
                         "the tables of memory choose their events themselves: leave out --event");
    if (o->at && (!o->heap || o->filter.from || o->filter.to))
        return error_set(err, FAULT_USAGE,
                         "--at goes with --heap, and is one instant: leave out --from and --to");
    if (o->between && (!o->heap || o->at || o->filter.from || o->filter.to))
        return error_set(err, FAULT_USAGE,
                         "--between goes with --heap, and without --at, --from and --to");
    if ((o->fail_on_leak || o->suppress) && !o->leaks)
        return error_set(err, FAULT_USAGE, "--fail-on-leak and --suppress go with --leaks");
    if (o->json && o->csv)
        return error_set(err, FAULT_USAGE, "--json and --csv exclude each other");
    if (inv->argc > 1 && !o->lines && !o->mem_lines)
        return error_set(err, FAULT_USAGE,
                         "one recording at a time: \"%s\" is one too many (a function may follow "
                         "with --lines or --mem-lines)",
                         inv->argv[1]);
    return filter_check(&o->filter, err);
}

/* What the views of memory need beside what the recording has. */
static int prepare(struct report_options *o, struct profile *p, const char *file, struct error *err)
{
    int rc = 0;
    if (of_heap(o) && !heap_recorded(p))
        return heap_missing(p, file, err);
    if (of_peak(o)) {
        char *end;
        uint64_t number = strtoull(o->filter.events.data[0], &end, 10);
        rc = *end ? error_set(err, FAULT_USAGE,
                              "with --peaks, --event takes the number of a peak, not \"%s\"",
                              o->filter.events.data[0])
                  : heap_hold_peak(p, &o->peak, number, &o->at, err);
        if (rc)
            return rc;
        o->under_peak = true;
        o->filter.events.len = 0; /* it was no event's name */
    }
    rc = o->between ? heap_between(p, o->between, &o->filter.from, &o->filter.to, err) : 0;
    if (rc)
        return rc;
    if (of_span(o))
        heap_hold(p, o->filter.from, o->at ? o->at : o->filter.to);
    if (o->ownership)
        heap_released(p);
    if (of_heap(o) || heap_screen(p, o))
        heap_skip_allocators(p);
    return 0;
}

static int run(struct invocation *inv)
{
    struct report_options *o = inv->options;
    struct profile profile;
    int rc = check(inv, &inv->error);
    if (rc)
        return rc;
    profile_init(&profile);
    struct load_options load = {.from = o->filter.from,
                                .to = o->filter.to,
                                .hide_interpreter = !o->filter.interpreter,
                                .keep_spans = o->between != NULL};
    rc = reading_open(inv->argv[0], NULL, &load, &profile, &inv->error);
    if (!rc && o->calls && !calls_recorded(&profile))
        rc = error_set(&inv->error, FAULT_MISSING,
                       "%s has no traced calls; `sonde run --trace` records them", inv->argv[0]);
    if (!rc)
        rc = prepare(o, &profile, inv->argv[0], &inv->error);
    if (!rc)
        rc = show(inv, &profile);
    profile_release(&profile);
    return rc;
}

const struct command command_report = {
    .name = "report",
    .summary = "Show what a recording holds, as tables",
    .usage = "[OPTION]... RECORDING [FUNCTION]",
    .description =
        "Without options, one screen: what ran, its processes, the functions and the path that "
        "cost most, where it waited, what the profiler itself cost and lost, and what to type "
        "next.\n\nself is what a function cost by itself, total what it cost with all that it "
        "called; a function counts once a sample, however often it is on the stack. Percentages "
        "are of all that is selected.",
    COMMAND_OPTIONS(struct report_options),
    COMMAND_OPERANDS(1, 2, "RECORDING"),
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
