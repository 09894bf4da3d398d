/* The peaks of a curve, and the table of them; see heap.h. */
#include "analyze/peaks.h"

#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

/* Of two that are too near the higher counts. */
static void peak_add(struct peaks *p, struct peak peak, const struct peaks_options *o)
{
    struct peak *last = p->all.len ? &p->all.data[p->all.len - 1] : NULL;
    if (peak.value < o->size || !peak.value)
        return;
    if (!last || peak.time - last->time >= o->gap)
        *vector_push(&p->all) = peak;
    else if (peak.value > last->value)
        *last = peak;
}

void peaks_init(struct peaks *p, const struct curve *c, const struct peaks_options *given)
{
    struct peaks_options o = *given;
    o.size = o.size ? o.size : c->highest / 10;
    o.delta = o.delta ? o.delta : c->highest / 20;
    *p = (struct peaks){0};
    struct peak top = {0};
    uint64_t valley = 0;
    bool rising = true;
    for (size_t i = 0; i < c->points.len; i++) {
        uint64_t time = c->points.data[i].time, value = (uint64_t)c->points.data[i].value;
        if (rising && value > top.value)
            top = (struct peak){time, value, value - valley};
        if (rising && value < top.value && top.value - value >= o.delta) {
            peak_add(p, top, &o);
            rising = false;
            valley = value;
        }
        valley = value < valley ? value : valley;
        if (!rising && value > valley && value - valley >= o.delta) {
            top = (struct peak){time, value, value - valley};
            rising = true;
        }
    }
    if (rising)
        peak_add(p, top, &o);
}

void peaks_release(struct peaks *p)
{
    vector_release(&p->all);
}

enum { NUMBER, TIME, VALUE, PERCENT, RISE, MOSTLY, LARGEST, COLUMNS };

/* The process that held most of it then. */
static void put_largest(struct view_section *s, struct view_value *row, const struct curves *c,
                        const struct profile *p, uint64_t time)
{
    const struct curve *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < c->all.len; i++) {
        const struct curve *at = &c->all.data[i];
        uint64_t value = at->rss || at->thread != PROFILE_NONE ? 0 : curve_at(at, time);
        if (value <= most)
            continue;
        best = at;
        most = value;
    }
    if (!best)
        return;
    struct text name = TEXT_INIT;
    process_text(p, best->process, &name);
    row[MOSTLY] = view_number(most);
    row[LARGEST] = view_text(s, name.data);
    text_release(&name);
}

void report_peaks(struct view *v, const struct report *r, const struct peaks_options *o)
{
    const struct view_column columns[COLUMNS] = {
        [NUMBER] = {"number", "no", VIEW_NUMBER},
        [TIME] = {"time", "time", VIEW_DURATION},
        [VALUE] = {"value", "bytes", VIEW_BYTES},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [RISE] = {"rise", "rise", VIEW_BYTES, 72},
        [MOSTLY] = {"largest", "of it", VIEW_BYTES},
        [LARGEST] = {"process", "in", VIEW_TEXT, .fill = true},
    };
    const struct profile *p = r->selection->profile;
    struct curves curves;
    struct curve total;
    struct peaks peaks;
    curves_init(&curves, r->selection);
    curve_total(&total, r->selection);
    peaks_init(&peaks, &total, o);
    view_init(v, "peaks", "peaks of the heap", "peaks");
    struct view_section *s = view_add_table(v, "peaks", "Peaks", columns, COLUMNS);
    for (size_t i = 0; i < peaks.all.len; i++) {
        const struct peak *at = &peaks.all.data[i];
        struct view_value *row =
            view_row(s, 0, at->value == total.highest ? VIEW_STRONG : VIEW_PLAIN);
        row[NUMBER] = view_number(i + 1);
        row[TIME] = view_number(at->time);
        row[VALUE] = view_number(at->value);
        row[PERCENT] = view_percent(at->value, total.highest);
        row[RISE] = view_number(at->rise);
        put_largest(s, row, &curves, p, at->time);
    }
    if (!peaks.all.len)
        view_note(view_add(v, VIEW_NOTES, "notes", ""), NOTE_INFO,
                  "no peak is as high as was asked for");
    peaks_release(&peaks);
    curve_release(&total);
    curves_release(&curves);
}

void report_usual_peaks(struct view *v, const struct report *r)
{
    report_peaks(v, r, &(struct peaks_options){0});
}
