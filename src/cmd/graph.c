/* `sonde graph`: a recording as a flame graph, icicle, flame chart, curves, or as a whole page. */
#include <string.h>

#include "analyze/calls.h"
#include "analyze/curves.h"
#include "analyze/flame.h"
#include "analyze/heap.h"
#include "base/output.h"
#include "cmd/command.h"
#include "cmd/filter.h"
#include "cmd/graphviz.h"
#include "cmd/page.h"
#include "cmd/picture.h"
#include "cmd/reading.h"
#include "render/calls_dot.h"
#include "render/curves.h"
#include "render/flame.h"

/* Per cent. In an SVG a quarter of a pixel at the usual width; in a page only charts, which have a
 * box for every change, need a bound. */
#define SVG_MIN 0.02
#define CHART_MIN 0.001

struct graph_options {
    const char *output, *title, *diff;
    int kind, format, heap;
    bool by_process, by_thread, addresses;
    double min;
    uint64_t width;
    struct filter filter;
};

static const struct graph_options defaults = {.width = 1200, .filter = FILTER_DEFAULTS};

static const char *const kinds[] = {"flame", "icicle", "flamechart", "threads",
                                    "page",  "calls",  "timeline",   NULL};
#define KIND_THREADS 3 /* after those of enum flame_kind */
#define KIND_PAGE 4
#define KIND_CALLS 5
#define KIND_TIMELINE 6

/* none stands for what is not said; peak is that of all processes together. */
enum heap_part { HEAP_NONE, HEAP_PEAK, HEAP_TREE_PEAK, HEAP_LIVE, HEAP_ALLOCATED, HEAP_TEMPORARY };

static const char *const heap_parts[] = {"none",      "peak",      "tree-peak", "live",
                                         "allocated", "temporary", NULL};

#define AT(kind, field) OPTION_##kind##_AT(struct graph_options, field)

static const struct option options[] = {
    {"output", 'o', AT(TEXT, output), .placeholder = "FILE",
     .help = "Where to write; - is standard output. The ending, .svg or .html, says what."},
    {"format", 0, AT(CHOICE, format), .placeholder = "FORMAT", .choices = picture_formats,
     .default_text = "by the ending of FILE",
     .help = "svg is one picture, also for image viewers; html is a page for large graphs."},
    {"kind", 'k', AT(CHOICE, kind), .placeholder = "KIND", .choices = kinds,
     .help =
         "flame grows upwards, icicle downwards; flamechart shows each thread over time. "
         "threads draws the heap of each process and thread over time, and what is resident; "
         "beside FILE, a text of the same name says who held what at the numbered peaks. page is "
         "the whole recording to look around in: overview, flame graphs, timeline, memory, "
         "calls and counters, in one HTML file. Of traced calls (run --trace): calls is the graph "
         "of who called whom how often, which Graphviz draws (or -o FILE.dot); timeline shows "
         "each call, thread by thread."},
    {"diff", 0, AT(TEXT, diff), .placeholder = "RECORDING",
     .help = "With --kind page: compare with this recording, which is the one before."},
    {"heap", 0, AT(CHOICE, heap), .placeholder = "PART", .choices = heap_parts, .alone = "peak",
     .default_text = "none",
     .help = "Memory in place of time, of a recording made with --heap: what was held at the peak "
             "(peak: of all processes together), what is "
             "live at the end, all that was allocated, or what was freed at once."},
    {"title", 0, AT(TEXT, title), .placeholder = "TEXT", .default_text = "what ran",
     .help = "Heading."},
    {"by-process", 0, AT(FLAG, by_process), .group = "Shape",
     .help = "A level of processes below the root."},
    {"by-thread", 0, AT(FLAG, by_thread), .group = "Shape",
     .help = "A level of threads below the root or the process."},
    {"addresses", 0, AT(FLAG, addresses), .group = "Shape",
     .help = "Tell code without symbols apart by address, not only by module."},
    {"min", 0, AT(PERCENT, min), .placeholder = "PCT", .high = 100, .group = "Shape",
     .default_text = "0.02 in SVG, 0 in HTML, 0.001 in an HTML flamechart",
     .help = "Leave out boxes narrower than this."},
    {"width", 'w', AT(UNSIGNED, width), .placeholder = "PIXELS", .min = FLAME_WIDTH_MIN,
     .max = FLAME_WIDTH_MAX, .group = "Shape", .help = "Width of an SVG."},
    FILTER_OPTIONS(struct graph_options, filter),
    {0}};

static const struct command_example examples[] = {
    {"sonde graph app.sonde -o app.html", "a flame graph to zoom and search in"},
    {"sonde graph app.sonde -o app.html --kind page", "all there is to see, in one file"},
    {"sonde graph app.sonde -o app.svg --kind icicle --by-thread", "a picture, threads apart"},
    {"sonde graph app.sonde -o wait.html --event wall", "running and waiting time together"},
    {"sonde graph app.sonde -o heap.html --heap", "who held the memory at its peak"},
    {"sonde graph app.sonde -o start.html --kind flamechart --to 2s", "the first seconds in order"},
    {"sonde graph app.sonde -o calls.svg --kind calls", "who called whom how often, of a trace"},
    {"sonde graph app.sonde -o time.html --kind timeline", "every call over time, of a trace"},
    {0}};

static const char *const see_also[] = {"report", "diff", "export", NULL};

static bool is_dot(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (!strcmp(dot, ".dot") || !strcmp(dot, ".gv"));
}

static int load(const struct invocation *inv, struct profile *p, struct error *err)
{
    const struct graph_options *o = inv->options;
    struct load_options lo = {.from = o->filter.from,
                              .to = o->filter.to,
                              .hide_interpreter = !o->filter.interpreter,
                              .keep_samples = o->kind == FLAME_CHART,
                              .keep_spans = o->kind == KIND_TIMELINE};
    return reading_open(inv->argv[0], NULL, &lo, p, err);
}

static int choose(const struct graph_options *o, const struct profile *p, struct selection *s,
                  struct error *err)
{
    static const char *const events[] = {[HEAP_TREE_PEAK] = "heap:tree-peak",
                                         [HEAP_LIVE] = "heap:live",
                                         [HEAP_ALLOCATED] = "heap:allocated",
                                         [HEAP_TEMPORARY] = "heap:temporary"};
    int result = filter_select(&o->filter, p, s, err);
    bool calls = o->kind == KIND_TIMELINE && calls_recorded(p) && !o->filter.events.len;
    if (result || (o->heap == HEAP_NONE && !calls))
        return result;
    struct selection all = *s;
    selection_init_event(s, &all,
                         calls                  ? "calls"
                         : o->heap == HEAP_PEAK ? heap_peak_event(&all)
                                                : events[o->heap]);
    selection_release(&all);
    return 0;
}

static int draw(const struct invocation *inv, const struct profile *p, bool html, struct error *err)
{
    const struct graph_options *o = inv->options;
    struct selection s;
    struct tree tree;
    struct flame flame;
    bool timeline = o->kind == KIND_TIMELINE, chart = timeline || o->kind == FLAME_CHART;
    double min = invocation_given(inv, "min") ? o->min : !html ? SVG_MIN : chart ? CHART_MIN : 0;
    int result = choose(o, p, &s, err);
    if (result)
        return result;
    if (selection_empty(&s) && !timeline) {
        result = error_set(err, FAULT_MISSING,
                           "there is nothing to draw: %s holds no samples of \"%s\" in the part "
                           "that was chosen",
                           inv->argv[0], s.label.data);
        selection_release(&s);
        return result;
    }
    tree_init(&tree, &s,
              &(struct tree_options){.by_process = o->by_process && !chart,
                                     .by_thread = o->by_thread && !chart,
                                     .by_module = !o->addresses,
                                     .waits = s.waits});
    if (timeline) {
        flame_from_spans(&flame, &tree, &s, min);
    } else if (chart) {
        result = flame_from_samples(&flame, &tree, &s, min, err);
    } else {
        tree_sort(&tree, TREE_BY_TOTAL);
        flame_from_tree(&flame, &tree, min);
    }
    struct flame_picture picture = {.flame = &flame,
                                    .selection = &s,
                                    .kind = chart ? FLAME_CHART : (enum flame_kind)o->kind,
                                    .title = o->title,
                                    .width = (uint32_t)o->width,
                                    .min_percent = min};
    if (!result)
        result = picture_write(o->output, &picture, html, err);
    flame_release(&flame);
    tree_release(&tree);
    selection_release(&s);
    return result;
}

/* An SVG as it is, or in a page that lets it be as large as it likes. */
static int write_calls(const struct graph_options *o, const struct text *dot, bool html,
                       struct error *err)
{
    struct text svg = TEXT_INIT, page = TEXT_INIT;
    if (is_dot(o->output))
        return picture_write_text(o->output, dot, err);
    int result = graphviz_svg(dot, &svg, err);
    const char *start = result ? NULL : strstr(svg.data, "<svg");
    if (start && html)
        text_format(&page,
                    "<!doctype html><meta charset=utf-8><title>calls</title>"
                    "<body style=\"margin:0\">%s</body>\n",
                    start);
    if (!result)
        result = picture_write_text(o->output, html ? &page : &svg, err);
    text_release(&svg);
    text_release(&page);
    return result;
}

static int draw_calls(const struct invocation *inv, const struct profile *p, bool html,
                      struct error *err)
{
    const struct graph_options *o = inv->options;
    struct selection all, s;
    struct calls calls;
    struct text dot = TEXT_INIT;
    int result = filter_select(&o->filter, p, &all, err);
    if (result)
        return result;
    selection_init_event(&s, &all, "calls");
    calls_init(&calls, &s);
    const char *command = profile_meta_get(p, "command");
    calls_dot(&calls, p, o->title ? o->title : command ? command : "", o->min, &dot);
    result = write_calls(o, &dot, html, err);
    text_release(&dot);
    calls_release(&calls);
    selection_release(&s);
    selection_release(&all);
    return result;
}

/* app.svg -> app.txt */
static void legend_path(struct text *out, const char *picture)
{
    const char *dot = strrchr(picture, '.'), *slash = strrchr(picture, '/');
    size_t len = dot && (!slash || dot > slash) ? (size_t)(dot - picture) : strlen(picture);
    text_add_len(out, picture, len);
    text_add(out, ".txt");
}

static int draw_curves(const struct invocation *inv, const struct profile *p, bool html,
                       struct error *err)
{
    const struct graph_options *o = inv->options;
    struct selection s;
    struct curves curves;
    struct text out = TEXT_INIT, path = TEXT_INIT;
    int result = filter_select(&o->filter, p, &s, err);
    if (result)
        return result;
    const char *command = profile_meta_get(p, "command");
    curves_init(&curves, &s);
    curves_rank(&curves);
    curves_svg(&(struct curves_picture){.curves = &curves,
                                        .profile = p,
                                        .title = o->title  ? o->title
                                                 : command ? command
                                                           : "sonde",
                                        .width = (uint32_t)o->width},
               html, &out);
    result = picture_write_text(o->output, &out, err);
    if (!result && !output_is_stream(o->output)) {
        text_clear(&out);
        curves_legend(&curves, &s, CURVES_SHOWN, &out);
        legend_path(&path, o->output);
        result = picture_write_text(path.data, &out, err);
    }
    text_release(&out);
    text_release(&path);
    curves_release(&curves);
    selection_release(&s);
    return result;
}

/* A page holds all of a recording, and narrows it itself. */
static int check_page(const struct graph_options *o, bool html, struct error *err)
{
    const struct filter *f = &o->filter;
    if (o->diff && o->kind != KIND_PAGE)
        return error_set(err, FAULT_USAGE,
                         "--diff goes with --kind page; for a picture of two recordings there is "
                         "sonde diff BEFORE AFTER -o FILE");
    if (o->kind != KIND_PAGE)
        return 0;
    if (!html)
        return error_set(err, FAULT_USAGE, "a page is HTML: end -o %s in .html", o->output);
    if (f->events.len || f->pids.len || f->threads.len || f->function || f->module || o->heap)
        return error_set(err, FAULT_USAGE,
                         "--kind page holds every event, process and function to choose from in "
                         "the browser: leave --event, --heap, --pid, --thread, --function and "
                         "--module away");
    return 0;
}

static int write_page(const struct invocation *inv, struct error *err)
{
    const struct graph_options *o = inv->options;
    return page_save(&(struct page_request){.recording = inv->argv[0],
                                            .base = o->diff,
                                            .output = o->output,
                                            .title = o->title,
                                            .load = {.from = o->filter.from,
                                                     .to = o->filter.to,
                                                     .hide_interpreter = !o->filter.interpreter}},
                     err);
}

static int check(const struct graph_options *o, bool *html, struct error *err)
{
    if (!o->output)
        return error_set(err, FAULT_USAGE,
                         "say where to write: -o FILE.html, -o FILE.svg, or -o - with --format");
    if (o->heap && (o->filter.events.len || o->kind == FLAME_CHART || o->kind == KIND_THREADS))
        return error_set(
            err, FAULT_USAGE,
            "--heap goes with neither --event nor --kind flamechart or threads: it chooses its "
            "event itself, and that has sums, not times");
    /* A page is HTML, wherever it goes. */
    bool page = o->kind == KIND_PAGE && !text_ends(o->output, ".svg");
    enum picture_format format = page && !o->format ? PICTURE_HTML : (enum picture_format)o->format;
    int result = o->kind == KIND_CALLS && is_dot(o->output)
                     ? 0
                     : picture_format(o->output, format, html, err);
    if (!result)
        result = check_page(o, *html, err);
    return result ? result : filter_check(&o->filter, err);
}

static int run(struct invocation *inv)
{
    struct profile profile;
    bool html = false;
    int result = check(inv->options, &html, &inv->error);
    const struct graph_options *o = inv->options;
    if (result || o->kind == KIND_PAGE)
        return result ? result : write_page(inv, &inv->error);
    profile_init(&profile);
    result = load(inv, &profile, &inv->error);
    if (!result && (o->heap || o->kind == KIND_THREADS) && !heap_recorded(&profile))
        result = heap_missing(&profile, inv->argv[0], &inv->error);
    if (!result && o->kind == FLAME_CHART && profile.cells.len && !profile.samples.len)
        result = error_set(&inv->error, FAULT_MISSING,
                           "%s does not say when its samples were taken, so there is no flamechart "
                           "of it; try --kind flame",
                           inv->argv[0]);
    if (!result && o->kind == KIND_CALLS && !calls_recorded(&profile))
        result =
            error_set(&inv->error, FAULT_MISSING,
                      "%s has no traced calls; `sonde run --trace` records them", inv->argv[0]);
    if (!result && o->kind == KIND_TIMELINE && !profile.spans.len)
        result = error_set(&inv->error, FAULT_MISSING,
                           "%s has no traced calls and no spans in this part; `sonde run --trace` "
                           "records them, and --kind flamechart shows samples over time",
                           inv->argv[0]);
    if (!result && o->kind == KIND_CALLS) {
        result = draw_calls(inv, &profile, html, &inv->error);
    } else if (!result && o->kind == KIND_THREADS) {
        heap_skip_allocators(&profile);
        result = draw_curves(inv, &profile, html, &inv->error);
    } else if (!result)
        result = draw(inv, &profile, html, &inv->error);
    profile_release(&profile);
    return result;
}

const struct command command_graph = {
    .name = "graph",
    .summary = "Draw a recording as a flame graph",
    .usage = "[OPTION]... -o FILE RECORDING",
    .description =
        "Each box is a function, what it called stands on it, and its width is its share of all "
        "that was recorded. In a flame chart the width is time instead, thread by thread.\n\nThe "
        "file is complete in itself: it opens on any machine, loads nothing from elsewhere, and "
        "can be searched and zoomed in a browser. An SVG is a plain picture too.\n\nRECORDING may "
        "also be a file of another tool that `sonde import` reads.",
    COMMAND_OPTIONS(struct graph_options),
    COMMAND_OPERANDS(1, 1, "RECORDING"),
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
