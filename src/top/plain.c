/* `sonde top` without a terminal; see top.h. */
#include <errno.h>
#include <stdio.h>

#include "top/top.h"

#define PATIENCE 500 /* ms */

static void put_rows(struct text *out, const struct panel *r, unsigned most)
{
    text_format(out, "%s\n", r->heading);
    for (size_t i = 0; i < r->len && i < most; i++)
        text_format(out, "%s\n", r->data[i].text);
}

static void put_table(struct text *out, const struct figures *f, unsigned most, unsigned width)
{
    struct panel_options o = {.recent = true, .filter = "", .width = width};
    struct panel processes = {0}, lower = {0}, heap = {0};
    text_format(out, "%.1f s  cpu %.1f%%  ", f->seconds, f->rate * 100);
    figures_add_counts(f, out);
    text_add_char(out, '\n');
    panel_processes(&processes, f, &o);
    put_rows(out, &processes, most);
    panel_lower(&lower, f, &o);
    put_rows(out, &lower, most);
    o.pane = PANE_HEAP;
    if (f->stacks.len) {
        panel_lower(&heap, f, &o);
        put_rows(out, &heap, most);
    }
    text_add_char(out, '\n');
    panel_release(&processes);
    panel_release(&lower);
    panel_release(&heap);
}

int top_plain(struct feed *s, FILE *to, uint64_t count, unsigned rows, unsigned width,
              struct error *err)
{
    struct figures now = {0}, fresh;
    struct text json = TEXT_INIT;
    uint64_t shown = 0;
    char trouble[200] = "";
    int rc = 0;
    while (!rc && (!count || shown < count)) {
        feed_trouble(s, trouble);
        if (!feed_take(s, PATIENCE, &json)) {
            if (trouble[0])
                break;
            continue;
        }
        rc = figures_read(&fresh, json.data, json.len, shown ? &now : NULL, err);
        figures_release(&now);
        now = fresh;
        struct text out = TEXT_INIT;
        if (!rc)
            put_table(&out, &now, rows, width);
        shown++;
        bool left = false; /* by who read it, as head(1) does: that is no fault */
        if (fputs(out.data, to) == EOF || fflush(to) == EOF) {
            left = errno == EPIPE;
            if (left)
                clearerr(to);
            else
                rc = error_errno(err, FAULT_SYSTEM, "cannot write the table");
        }
        text_release(&out);
        if (now.complete || left)
            break;
    }
    if (!rc && !shown)
        rc = error_set(err, FAULT_MISSING, "nothing came from the session: %s",
                       trouble[0] ? trouble : "no answer");
    figures_release(&now);
    text_release(&json);
    return rc;
}
