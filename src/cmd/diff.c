/* `sonde diff`: what changed between two recordings; a table, JSON, CSV or a picture. */
#include <stdlib.h>

#include "analyze/diff.h"
#include "cmd/command.h"
#include "cmd/filter.h"
#include "cmd/picture.h"
#include "cmd/printing.h"
#include "cmd/reading.h"
#include "render/flame.h"

#define TABLE_TOP 25
#define SVG_MIN 0.02 /* per cent: a quarter of a pixel at the usual width */

struct diff_choices {
    bool lines, stacks, anyway, json, csv;
    int per, sort, format, kind;
    double fail_above, min;
    uint64_t top, width;
    const char *output, *title;
    struct filter filter;
};

static const struct diff_choices defaults = {.width = 1200, .filter = FILTER_DEFAULTS};

static const char *const pers[] = {"automatic", "run", "second", "share", NULL};
static const char *const sorts[] = {"self", "total", "name", NULL};
static const char *const kinds[] = {"flame", "icicle", NULL};

#define AT(kind, field) OPTION_##kind##_AT(struct diff_choices, field)

static const struct option options[] = {
    {"lines", 0, AT(FLAG, lines), .help = "Source lines instead of functions."},
    {"stacks", 0, AT(FLAG, stacks), .help = "Whole stacks instead of functions."},
    {"per", 0, AT(CHOICE, per), .placeholder = "WHAT", .choices = pers,
     .help = "Compare what was recorded (run), per second of recording, or as a share of each "
             "total. Automatic is run if durations and totals are about equal, else share."},
    {"anyway", 0, AT(FLAG, anyway),
     .help = "Compare also what counts different events, or was recorded in different ways or at "
             "different rates."},
    {"fail-above", 0, AT(PERCENT, fail_above), .placeholder = "PCT", .high = 100,
     .default_text = "never",
     .help = "Status 3 if a function has grown, by itself or with what it calls, by more than PCT "
             "percentage points of the total, beyond what chance explains."},
    {"output", 'o', AT(TEXT, output), .placeholder = "FILE", .group = "Picture",
     .help = "Draw a flame graph instead: FILE.svg or FILE.html. Red has grown, blue has shrunk; a "
             "box is as wide as the larger of the two, so that what vanished is there too."},
    {"format", 0, AT(CHOICE, format), .placeholder = "FORMAT", .choices = picture_formats,
     .group = "Picture", .default_text = "by the ending of FILE", .help = "svg or html."},
    {"kind", 'k', AT(CHOICE, kind), .placeholder = "KIND", .choices = kinds, .group = "Picture",
     .help = "flame grows upwards, icicle downwards."},
    {"title", 0, AT(TEXT, title), .placeholder = "TEXT", .default_text = "the two files",
     .group = "Picture", .help = "Heading."},
    {"min", 0, AT(PERCENT, min), .placeholder = "PCT", .high = 100, .group = "Picture",
     .default_text = "0.02 in SVG, 0 in HTML", .help = "Leave out boxes narrower than this."},
    {"width", 'w', AT(UNSIGNED, width), .placeholder = "PIXELS", .min = FLAME_WIDTH_MIN,
     .max = FLAME_WIDTH_MAX, .group = "Picture", .help = "Width of an SVG."},
    {"top", 'n', AT(UNSIGNED, top), .placeholder = "N", .suffix = true, .group = "Table",
     .default_text = "25, all in JSON and CSV", .help = "Rows; 0 for all."},
    {"sort", 's', AT(CHOICE, sort), .placeholder = "BY", .choices = sorts, .group = "Table",
     .help = "Largest change first: of self, or of total; or by name."},
    {"json", 0, AT(FLAG, json), .group = "Table", .help = "JSON: numbers as they are."},
    {"csv", 0, AT(FLAG, csv), .group = "Table", .help = "CSV of the table."},
    FILTER_OPTIONS(struct diff_choices, filter),
    {0}};

static const struct command_example examples[] = {
    {"sonde diff before.sonde after.sonde", "which functions cost more, which less"},
    {"sonde diff before.sonde after.sonde -o change.html", "the same as a flame graph"},
    {"sonde diff main.sonde branch.sonde --fail-above 2%", "a check for continuous integration"},
    {"sonde diff old.pb.gz new.pb.gz --lines --json", "files of other tools, line by line"},
    {0}};

static const struct command_status statuses[] = {
    {STATUS_GROWN, "with --fail-above: something has grown by more than that"}, {0}};

static const char *const see_also[] = {"report", "graph", "merge", NULL};

static int draw(const struct diff *d, const struct invocation *inv, bool html, struct error *err)
{
    const struct diff_choices *o = inv->options;
    double min = invocation_given(inv, "min") ? o->min : html ? 0 : SVG_MIN;
    struct text title = TEXT_INIT;
    struct tree tree;
    struct flame flame;
    diff_flame(d, min, &tree, &flame);
    text_format(&title, "%s → %s", d->side[0].file, d->side[1].file);
    if (d->per != DIFF_PER_RUN) /* what the boxes of the second hold is not what was recorded */
        text_add(&title, d->per == DIFF_PER_SHARE ? ", scaled to the same total"
                                                  : ", scaled to the same time");
    struct flame_picture picture = {.flame = &flame,
                                    .selection = &d->side[1].selection,
                                    .kind = o->kind ? FLAME_ICICLE : FLAME_GRAPH,
                                    .title = o->title ? o->title : title.data,
                                    .width = (uint32_t)o->width,
                                    .min_percent = min};
    int rc = picture_write(o->output, &picture, html, err);
    flame_release(&flame);
    tree_release(&tree);
    text_release(&title);
    return rc;
}

static int print(const struct diff *d, const struct invocation *inv, struct error *err)
{
    const struct diff_choices *o = inv->options;
    enum diff_sort sort = (enum diff_sort)o->sort;
    uint64_t top = invocation_given(inv, "top") ? o->top : o->json || o->csv ? 0 : TABLE_TOP;
    struct view v;
    (o->lines ? diff_lines : o->stacks ? diff_stacks : diff_functions)(&v, d, top, sort);
    int rc = view_print(&v, o->json, o->csv, err);
    view_release(&v);
    return rc;
}

/* 0, or STATUS_GROWN with a sentence. */
static int judge(const struct diff *d, double limit, struct error *err)
{
    struct text worst = TEXT_INIT;
    size_t grown = diff_grown(d, limit, &worst);
    int status = 0;
    if (grown) {
        status = STATUS_GROWN;
        if (grown > 1)
            error_set(err, FAULT_INPUT, "%s, more than the %g allowed; %zu more grew too much",
                      worst.data, limit, grown - 1);
        else
            error_set(err, FAULT_INPUT, "%s, more than the %g allowed", worst.data, limit);
    }
    text_release(&worst);
    return status;
}

/* Which of the two it is that has no such event. */
static int choose(struct invocation *inv, const struct profile *p, int side, struct selection *s)
{
    const struct diff_choices *o = inv->options;
    int rc = filter_select(&o->filter, &p[side], s, &inv->error);
    return rc ? error_prefix(&inv->error, "%s", inv->argv[side]) : 0;
}

static int compare(struct invocation *inv, struct profile p[2], bool html)
{
    const struct diff_choices *o = inv->options;
    struct selection chosen[2] = {0};
    struct diff d = {0};
    int rc = choose(inv, p, 0, &chosen[0]);
    if (!rc) {
        rc = choose(inv, p, 1, &chosen[1]);
        if (!rc) {
            const struct selection *sides[2] = {&chosen[0], &chosen[1]};
            rc = diff_init(&d, &p[0], &p[1], sides,
                           &(struct diff_options){.file = {inv->argv[0], inv->argv[1]},
                                                  .per = (enum diff_per)o->per,
                                                  .anyway = o->anyway,
                                                  .function = o->filter.function,
                                                  .module = o->filter.module,
                                                  .no_inline = !o->filter.inlined},
                           &inv->error);
            if (!rc)
                rc = o->output ? draw(&d, inv, html, &inv->error) : print(&d, inv, &inv->error);
            if (!rc && invocation_given(inv, "fail-above"))
                rc = judge(&d, o->fail_above, &inv->error);
            diff_release(&d);
            selection_release(&chosen[1]);
        }
        selection_release(&chosen[0]);
    }
    return rc;
}

static int check(const struct diff_choices *o, bool *html, struct error *err)
{
    if (o->lines && o->stacks)
        return error_set(err, FAULT_USAGE, "--lines and --stacks exclude each other");
    if (o->json && o->csv)
        return error_set(err, FAULT_USAGE, "--json and --csv exclude each other");
    if (o->output && (o->json || o->csv || o->lines || o->stacks))
        return error_set(err, FAULT_USAGE,
                         "-o draws a picture; --lines, --stacks, --json and --csv are for tables");
    int rc = o->output ? picture_format(o->output, (enum picture_format)o->format, html, err) : 0;
    return rc ? rc : filter_check(&o->filter, err);
}

static int run(struct invocation *inv)
{
    const struct diff_choices *o = inv->options;
    struct profile p[2];
    bool html = false;
    int rc = check(o, &html, &inv->error);
    if (rc)
        return rc;
    struct load_options load = {
        .from = o->filter.from, .to = o->filter.to, .hide_interpreter = !o->filter.interpreter};
    for (int i = 0; i < 2; i++)
        profile_init(&p[i]);
    for (int i = 0; i < 2 && !rc; i++)
        rc = reading_open(inv->argv[i], NULL, &load, &p[i], &inv->error);
    if (!rc)
        rc = compare(inv, p, html);
    for (int i = 0; i < 2; i++)
        profile_release(&p[i]);
    return rc;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "Show what changed between two recordings",
    .usage = "[OPTION]... BEFORE AFTER",
    .description =
        "Functions are matched by name and module, not by address, so BEFORE and AFTER may be of "
        "different builds; lines by their place in the function. What is in one of the two alone "
        "is marked new or gone. Either may be a file of another tool that `sonde import` "
        "reads.\n\nA change is coloured, and counts for --fail-above, only if it exceeds what "
        "chance alone would explain given the number of samples: four standard errors of the "
        "difference of the two shares.",
    COMMAND_OPTIONS(struct diff_choices),
    COMMAND_OPERANDS(2, 2, "RECORDING"),
    .examples = examples,
    .statuses = statuses,
    .see_also = see_also,
    .run = run,
};
