/* What was held at one time, or came about in a span and was left at its end; see heap.h. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "analyze/peaks.h"
#include "base/memory.h"

/* Of the highest peak the recording has the exact stacks, whenever the history looked. */
static void hold_highest(struct profile *p, const char *event, const char *name)
{
    uint32_t from = profile_event_find(p, event);
    uint32_t held = profile_event_add(p, name, UNIT_BYTES, 0);
    for (size_t i = 0, count = p->cells.len; i < count; i++) {
        const struct profile_cell c = p->cells.data[i];
        if (c.event == from)
            profile_count(p, held, c.thread, c.stack, c.count, c.value);
    }
}

/* The peaks of all processes together. */
struct numbered {
    struct peaks peaks;
    uint64_t highest;
    const char *event; /* that has the stacks of the highest */
};

static int numbered_init(struct numbered *n, const struct profile *p, const struct peaks_options *o,
                         struct error *err)
{
    struct selection s;
    struct curve total;
    *n = (struct numbered){0};
    int rc = selection_init(&s, p, NULL, err);
    if (rc)
        return rc;
    curve_total(&total, &s);
    peaks_init(&n->peaks, &total, o);
    n->highest = total.highest;
    n->event = heap_peak_event(&s);
    curve_release(&total);
    selection_release(&s);
    return 0;
}

static void hold_peak(struct profile *p, const struct numbered *n, size_t i, const char *name)
{
    const struct peak *peak = &n->peaks.all.data[i];
    if (peak->value == n->highest)
        hold_highest(p, n->event, name);
    else
        heap_hold_as(p, name, 0, peak->time);
}

int heap_hold_peak(struct profile *p, const struct peaks_options *o, uint64_t number,
                   uint64_t *time, struct error *err)
{
    struct numbered n;
    int rc = numbered_init(&n, p, o, err);
    if (!rc && (number == 0 || number > n.peaks.all.len))
        rc =
            error_set(err, FAULT_MISSING, "there is no peak %llu; `sonde report --peaks` lists %zu",
                      (unsigned long long)number, n.peaks.all.len);
    if (!rc) {
        *time = n.peaks.all.data[number - 1].time;
        hold_peak(p, &n, (size_t)number - 1, HEAP_HELD);
    }
    peaks_release(&n.peaks);
    return rc;
}

void heap_hold_peaks(struct profile *p, const struct peaks_options *o, unsigned most)
{
    struct numbered n;
    char name[32];
    if (numbered_init(&n, p, o, NULL))
        return;
    for (size_t i = 0; i < n.peaks.all.len && i < most; i++) {
        snprintf(name, sizeof name, "heap:peak-%zu", i + 1);
        hold_peak(p, &n, i, name);
    }
    peaks_release(&n.peaks);
}

/* The first point of the history at or after a time, which has what was done by then. */
static uint64_t point_after(const struct profile *p, uint64_t time)
{
    uint64_t best = UINT64_MAX;
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        if (d->kind == DETAIL_GREW && d->key >= time && d->key < best)
            best = d->key;
    }
    return best;
}

/* When each call, or one under it, allocated last before `to`, as the history knows it: what its
 * point after `to` tells of may have been as late as that. */
static uint64_t *last_times(const struct report *r, uint32_t event, uint64_t to)
{
    const struct profile *p = r->selection->profile;
    const struct tree *t = r->tree;
    uint64_t *last = memory_array(t->nodes.len + 1, sizeof *last);
    uint64_t known = point_after(p, to);
    for (size_t i = 0; i < p->details.len; i++) {
        const struct profile_detail *d = &p->details.data[i];
        uint32_t node = d->kind == DETAIL_GREW && d->key <= known ? tree_node_of(t, event, d->stack)
                                                                  : TREE_NONE;
        uint64_t time = d->key < to ? d->key : to;
        if (node != TREE_NONE && time > last[node])
            last[node] = time;
    }
    for (uint32_t i = (uint32_t)t->nodes.len; i-- > 1;) {
        uint32_t parent = t->nodes.data[i].parent;
        if (parent != TREE_NONE && last[i] > last[parent])
            last[parent] = last[i];
    }
    return last;
}

enum { TOTAL, PERCENT, BLOCKS, LAST, CALL, PLACE, COLUMNS };

static void put_call(struct view_section *s, const struct report *r, uint32_t node, uint64_t last)
{
    const struct profile *p = r->selection->profile;
    const struct tree_node *n = &r->tree->nodes.data[node];
    struct view_value *row = view_row(s, n->depth - 1, VIEW_PLAIN);
    struct text place = TEXT_INIT;
    row[TOTAL] = view_number(n->total);
    row[PERCENT] = view_percent(n->total, r->selection->value);
    if (n->total_count) /* at the highest peak of all only bytes are known */
        row[BLOCKS] = view_number(n->total_count);
    if (last)
        row[LAST] = view_number(heap_time(p, last));
    row[CALL] = view_text(s, tree_symbol(r->tree, node)->name);
    tree_place(r->tree, node, &place);
    if (place.len)
        row[PLACE] = view_text(s, place.data);
    text_release(&place);
}

static void section_calls(struct view *v, const struct report *r, const uint64_t *last)
{
    const struct view_column columns[COLUMNS] = {
        [TOTAL] = {"total", "bytes", VIEW_BYTES},
        [PERCENT] = {"percent", "%", VIEW_PERCENT},
        [BLOCKS] = {"blocks", "blocks", VIEW_COUNT, 100},
        [LAST] = {"last", "last grew", VIEW_DURATION},
        [CALL] = {"call", "call", VIEW_TEXT},
        [PLACE] = {"place", "source", VIEW_TEXT, 100, .cut = VIEW_CUT_START},
    };
    const struct tree *t = r->tree;
    struct view_section *s = view_add_table(v, "calls", "Calls", columns, COLUMNS);
    s->tree = true;
    uint64_t least = (uint64_t)((double)r->selection->value * r->min / 100);
    for (uint32_t node = t->nodes.data[0].first_child; node != TREE_NONE;) {
        const struct tree_node *n = &t->nodes.data[node];
        bool shown = n->total && n->total >= least && (!r->depth || n->depth <= r->depth);
        if (shown)
            put_call(s, r, node, last[node]);
        else
            s->omitted++;
        uint32_t next = shown ? n->first_child : TREE_NONE;
        for (uint32_t at = node; next == TREE_NONE && at;) {
            next = t->nodes.data[at].next;
            at = t->nodes.data[at].parent;
        }
        node = next;
    }
}

void report_held(struct view *v, const struct report *r, uint64_t from, uint64_t to, bool calls)
{
    struct heap_part part;
    const struct profile *p = r->selection->profile;
    heap_part_init(&part, r, HEAP_HELD);
    view_init(v, "held", from ? "grown and not freed" : "held", calls ? "calls" : "functions");
    struct view_section *s = view_add(v, VIEW_FACTS, "held", "");
    view_fact(s, "held", "bytes", "bytes", VIEW_BYTES, view_number(part.selection.value));
    struct view_fact *blocks =
        view_fact(s, "held", "blocks", "blocks", VIEW_COUNT, view_number(part.selection.count));
    blocks->after = report_plural(part.selection.count, " block", " blocks");
    blocks->hidden = !part.selection.count && part.selection.value;
    if (from)
        view_fact(s, "time", "from", "from", VIEW_DURATION, view_number(from))->before =
            "allocated after ";
    uint64_t end = heap_time(p, p->end);
    view_fact(s, "time", "to", "to", VIEW_DURATION, view_number(to ? to : end))->before =
        from ? "not freed by " : "at ";
    if (calls) {
        uint64_t *last =
            last_times(&part.r, profile_event_find(p, HEAP_HELD), to ? p->start + to : UINT64_MAX);
        section_calls(v, &part.r, last);
        free(last);
    } else {
        section_functions(v, &part.r);
        section_stacks(v, &part.r, "stacks", "Stacks", r->top);
    }
    heap_part_release(&part);
}
