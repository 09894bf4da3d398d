/* Views by name; see views.h. */
#include "live/views.h"

#include <string.h>

#include "analyze/heap.h"
#include "base/text.h"
#include "profile/interpreter.h"
#include "render/excerpt.h"

/* What heap_hold_peak has found. */
static void make_held(struct view *v, const struct report *r)
{
    report_held(v, r, 0, 0, false);
}

static const struct {
    const char *name;
    void (*make)(struct view *v, const struct report *r); /* or */
    int (*find)(struct view *v, const struct report *r, const char *function, struct error *err);
    bool heap;
} kinds[] = {
    {"overview", report_overview, NULL, false},   {"functions", report_functions, NULL, false},
    {"processes", report_processes, NULL, false}, {"threads", report_threads, NULL, false},
    {"modules", report_modules, NULL, false},     {"tree", report_tree, NULL, false},
    {"notes", report_notes, NULL, false},         {"heap", report_heap, NULL, true},
    {"leaks", report_usual_leaks, NULL, true},    {"peaks", report_usual_peaks, NULL, true},
    {"ownership", report_ownership, NULL, true},  {"held", make_held, NULL, true},
    {"callers", NULL, report_callers, false},     {"callees", NULL, report_callees, false},
    {"lines", NULL, report_lines, false},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static int unknown(const char *name, struct error *err)
{
    struct text names = TEXT_INIT;
    for (size_t i = 0; i < KINDS; i++)
        text_format(&names, "%s%s", i ? ", " : "", kinds[i].name);
    error_set(err, FAULT_MISSING, "there is no view '%s'; there are %s", name, names.data);
    text_release(&names);
    return FAULT_MISSING;
}

static int select_part(const struct profile *p, const struct views_options *o, bool by_function,
                       struct selection *s, struct error *err)
{
    struct selection_options so = {.events = &o->event,
                                   .event_count = o->event ? 1 : 0,
                                   .pids = &o->pid,
                                   .pid_count = o->pid ? 1 : 0,
                                   .threads = &o->thread,
                                   .thread_count = o->thread ? 1 : 0,
                                   .module = o->module,
                                   .function = by_function ? o->function : NULL};
    return selection_init(s, p, &so, err);
}

/* What views of memory need beside what was recorded. */
static int prepare(struct profile *p, void (*make)(struct view *, const struct report *),
                   const struct views_options *o, struct error *err)
{
    static const struct peaks_options usual;
    uint64_t time;
    if (make == report_ownership)
        heap_released(p);
    return make == make_held ? heap_hold_peak(p, &usual, o->peak, &time, err) : 0;
}

int views_make(const char *name, struct profile *p, const struct views_options *o, views_use *use,
               void *context, struct error *err)
{
    size_t kind = 0;
    while (kind < KINDS && strcmp(kinds[kind].name, name) != 0)
        kind++;
    if (kind == KINDS)
        return unknown(name, err);
    if (kinds[kind].heap && !heap_recorded(p) && profile_event_find(p, "heap:live") == PROFILE_NONE)
        return heap_missing(p, "this session", err);
    if (kinds[kind].find && !o->function && strcmp(name, "lines") != 0)
        return error_set(err, FAULT_USAGE, "the view '%s' needs a function", name);
    int rc = prepare(p, kinds[kind].make, o, err);
    if (rc)
        return rc;
    profile_hide_interpreter(p);
    if (kinds[kind].heap)
        heap_skip_allocators(p);
    struct selection selection;
    struct tree tree;
    struct view view = {0};
    rc = select_part(p, o, kinds[kind].make != NULL, &selection, err);
    if (rc) {
        selection_release(&selection);
        return rc;
    }
    tree_init(&tree, &selection, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    struct excerpt *source = excerpt_new();
    struct report r = {.selection = &selection,
                       .tree = &tree,
                       .source = excerpt_line,
                       .source_context = source,
                       .file = "FILE",
                       .top = o->top,
                       .sort = o->sort,
                       .min = o->min,
                       .depth = o->depth};
    if (kinds[kind].make)
        kinds[kind].make(&view, &r);
    else
        rc = kinds[kind].find(&view, &r, o->function, err);
    if (!rc)
        use(context, &view);
    view_release(&view);
    excerpt_free(source);
    tree_release(&tree);
    selection_release(&selection);
    return rc;
}
