/* Records of any content through every table and every writer: what was forged shows, harmlessly.
 */
#include <stdint.h>
#include <stdlib.h>

#include "analyze/report.h"
#include "recording/loader.h"
#include "render/csv.h"
#include "render/terminal.h"
#include "render/view_json.h"

static void write_all(struct view *v)
{
    struct text out = TEXT_INIT;
    struct json j;
    terminal_write(v, (struct terminal_style){.width = 80, .colour = true}, &out);
    terminal_write(v, (struct terminal_style){.width = 160}, &out);
    csv_write(v, &out);
    text_release(&out);
    json_init(&j, NULL, NULL);
    view_json(v, &j);
    json_finish(&j);
    json_release(&j);
    view_release(v);
}

static void make_all(const struct report *r)
{
    static void (*const plain[])(struct view *, const struct report *) = {
        report_overview, report_functions, report_modules, report_processes,
        report_threads,  report_tree,      report_notes};
    struct error err;
    struct view v;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        plain[i](&v, r);
        write_all(&v);
    }
    report_callers(&v, r, "a", &err);
    write_all(&v);
    report_callees(&v, r, "a", &err);
    write_all(&v);
    report_lines(&v, r, NULL, &err);
    write_all(&v);
    report_lines(&v, r, "a", &err);
    write_all(&v);
}

static void report_on(const struct profile *p, const char *event, bool no_inline, uint64_t top)
{
    struct selection s;
    struct error err;
    struct selection_options o = {
        .events = &event, .event_count = event ? 1 : 0, .no_inline = no_inline};
    if (selection_init(&s, p, &o, &err) == 0) {
        struct tree t;
        tree_init(&t, &s, &(struct tree_options){.by_module = true});
        tree_sort(&t, TREE_BY_TOTAL);
        make_all(&(struct report){
            .selection = &s, .tree = &t, .file = "x.sonde", .top = top, .min = top ? 1 : 0});
        /* The columns add up, whatever they hold. */
        uint64_t self = 0;
        for (size_t i = 0; i < t.nodes.len; i++)
            self += t.nodes.data[i].self;
        if (self != s.value)
            abort();
        tree_release(&t);
    }
    selection_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile p;
    profile_init(&p);
    struct loader *l = loader_new(&p, NULL);
    loader_feed(l, data, size);
    loader_free(l);
    report_on(&p, NULL, false, 3);
    report_on(&p, "wall", true, 0);
    profile_release(&p);
    return 0;
}
