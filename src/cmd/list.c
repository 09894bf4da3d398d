/* sonde list: which events there are, and which of them can be had here. */
#include <stdlib.h>
#include <string.h>

#include "capture/event_list.h"
#include "cmd/command.h"
#include "cmd/printing.h"

struct list_options {
    bool json, csv, open;
};

static const struct option options[] = {
    {"open", 0, OPTION_FLAG_AT(struct list_options, open), .help = "Only those that open here."},
    {"json", 0, OPTION_FLAG_AT(struct list_options, json), .help = "JSON."},
    {"csv", 0, OPTION_FLAG_AT(struct list_options, csv), .help = "CSV of the table."},
    {0}};

static const char *const groups[] = {
    [EVENT_HARDWARE] = "hardware", [EVENT_CACHE] = "hardware cache",  [EVENT_SOFTWARE] = "software",
    [EVENT_PMU] = "kernel PMU",    [EVENT_TRACEPOINT] = "tracepoint", [EVENT_PFM] = "libpfm4"};

static const struct view_column columns[] = {
    {"event", "event", VIEW_TEXT, .fill = true},
    {"alias", "or", VIEW_TEXT},
    {"group", "group", VIEW_TEXT},
    {"opens", "opens", VIEW_TEXT},
    {"why", "why not", VIEW_TEXT, .from_width = VIEW_MACHINES},
    {"what", "what it counts", VIEW_TEXT, .from_width = 110, .cut = VIEW_CUT_END},
};

struct listing {
    struct view *view;
    struct view_section *section, *notes;
    const struct list_options *o;
    size_t matched, open;
    const char *told; /* the last reason that became a note */
};

static void add(void *context, const struct event_entry *e)
{
    struct listing *l = context;
    l->matched++;
    l->open += e->opens;
    if (l->o->open && !e->opens)
        return;
    struct view_value *row = view_row(l->section, 0, VIEW_PLAIN);
    row[0] = view_text(l->section, e->name);
    if (e->alias)
        row[1] = view_text(l->section, e->alias);
    row[2] = view_text(l->section, groups[e->group]);
    row[3] = view_text(l->section, e->opens ? "yes" : "no");
    row[4] = view_text(l->section, e->why);
    row[5] = view_text(l->section, e->what);
    if (*e->why && (!l->told || strcmp(l->told, row[4].text))) {
        struct text note = TEXT_INIT;
        l->told = row[4].text;
        text_format(&note, "%s: %s%s", groups[e->group], e->opens ? "" : "not here: ", e->why);
        bool known = false;
        for (size_t i = 0; i < l->notes->notes.len; i++)
            known |= !strcmp(l->notes->notes.data[i].text, note.data);
        if (!known && l->notes->notes.len < 20)
            view_note(l->notes, NOTE_INFO, note.data);
        text_release(&note);
    }
}

static int run(struct invocation *inv)
{
    const struct list_options *o = inv->options;
    struct view v;
    if (o->json && o->csv)
        return error_set(&inv->error, FAULT_USAGE, "--json and --csv exclude each other");
    view_init(&v, "list", "", "events");
    struct listing l = {.view = &v, .o = o};
    l.section = view_add_table(&v, "events", "", columns, sizeof columns / sizeof *columns);
    l.notes = view_add(&v, VIEW_NOTES, "notes", "");
    event_list(inv->argc ? inv->argv[0] : NULL, add, &l);
    if (!inv->argc) {
        view_note(l.notes, NOTE_INFO,
                  "raw events of the CPU: rNNN, or cpu/event=0xNN,umask=0xNN/; :u and :k count one "
                  "side only");
        if (!event_listing_complete())
            view_note(l.notes, NOTE_INFO, "libpfm4 is not installed: its names are missing here");
    }
    int rc = l.matched ? view_print(&v, o->json, o->csv, &inv->error)
                       : error_set(&inv->error, FAULT_MISSING, "no event matches '%s'",
                                   inv->argc ? inv->argv[0] : "*");
    view_release(&v);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde list", "everything, by group"},
    {"sonde list '*cache*'", "what has to do with caches"},
    {"sonde list 'sched:*'", "the scheduler's tracepoints"},
    {"sonde list --open", "only what can be counted here"},
    {0}};

static const char *const see_also[] = {"stat", "run", NULL};

const struct command command_list = {
    .name = "list",
    .summary = "List events, and whether they can be had here",
    .usage = "[OPTION]... [PATTERN]",
    .description =
        "Events of the kernel, of the PMUs that it describes in sysfs, its tracepoints, and those "
        "that libpfm4 knows for this CPU, where it is installed. Each is opened once to see "
        "whether this machine and user have it; of the tracepoints only the first few are, because "
        "each takes the kernel a while, and the others are taken to be alike.\n\n"
        "PATTERN is one of the shell: '*' stands for anything. Upper and lower case are equal.",
    .options = options,
    .options_size = sizeof(struct list_options),
    .operands_max = 1,
    .operand = "PATTERN",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
