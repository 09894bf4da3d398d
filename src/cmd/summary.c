/* One screen after recording; see summary.h. */
#include "cmd/summary.h"

#include "analyze/report.h"
#include "base/io.h"
#include "cmd/filter.h"
#include "recording/loader.h"
#include "render/terminal.h"

#define SUMMARY_TOP 8

static void print_profile(const struct profile *p, const char *recording, int fd)
{
    struct filter all = FILTER_DEFAULTS;
    struct selection selection;
    struct tree tree;
    struct view view = {0};
    struct text out = TEXT_INIT;
    if (filter_select(&all, p, &selection, NULL))
        return;
    tree_init(&tree, &selection, &(struct tree_options){.by_module = true});
    tree_sort(&tree, TREE_BY_TOTAL);
    struct report r = {
        .selection = &selection, .tree = &tree, .file = recording, .top = SUMMARY_TOP};
    report_overview(&view, &r);
    terminal_write(&view, terminal_style_of(fd), &out);
    /* Nobody is left to tell if the terminal is gone. */
    if (io_write(fd, out.data, out.len) < 0)
        text_clear(&out);
    text_release(&out);
    view_release(&view);
    tree_release(&tree);
    selection_release(&selection);
}

void summary_print(const char *recording, int fd)
{
    struct profile p;
    profile_init(&p);
    if (!recording_load(recording, NULL, &p, NULL))
        print_profile(&p, recording, fd);
    profile_release(&p);
}
