/*
 * The screen of the heap: how much at the peak and who held it, what was never freed,
 * what was freed at once, and what recording it cost; see heap.h.
 */
#include <stddef.h>
#include <stdlib.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

#define SCREEN_PROCESSES 5
#define SCREEN_PATH 6
#define SCREEN_STACKS 4
#define SCREEN_NOTES 3

static void glue(struct view_fact *f, const char *before, const char *after)
{
    f->before = before;
    f->after = after;
    f->glued = true;
}

static void add_peak(struct view_section *s, const struct profile *p, const struct heap_sums *h,
                     const char *line)
{
    bool one = h->processes <= 1;
    uint64_t peak = one ? h->all.peak : h->tree_peak;
    uint64_t time = one ? h->all.peak_time : h->tree_peak_time;
    view_fact(s, line, "peak", "peak", VIEW_BYTES, view_number(peak));
    glue(view_fact(s, line, "peak_time", "time of the peak", VIEW_DURATION,
                   view_number(heap_time(p, time))),
         " at ", "");
    struct view_fact *f = view_fact(s, line, "peaks_sum", "sum of the processes' own peaks",
                                    VIEW_BYTES, view_number(h->all.peak));
    f->before = "the processes' own peaks, at other times, add up to ";
    f->hidden = one;
}

static void add_live(struct view_section *s, const struct heap_sums *h, const char *line)
{
    view_fact(s, line, "live", "live at the end", VIEW_BYTES, view_number(h->all.live));
    struct view_fact *f = view_fact(s, line, "live_blocks", "blocks live at the end", VIEW_COUNT,
                                    view_number(h->all.live_blocks));
    glue(f, " in ", report_plural(h->all.live_blocks, " block at the end", " blocks at the end"));
}

static void section_sums(struct view *v, const struct profile *p, const struct heap_sums *h)
{
    struct view_section *s = view_add(v, VIEW_FACTS, "heap", "");
    const char *mode = profile_meta_get(p, "heap_mode");
    add_peak(s, p, h, "peak");
    view_fact(s, "allocated", "allocated", "allocated", VIEW_BYTES, view_number(h->all.allocated));
    glue(view_fact(s, "allocated", "allocations", "allocations", VIEW_COUNT,
                   view_number(h->all.allocations)),
         " in ", report_plural(h->all.allocations, " allocation", " allocations"));
    view_fact(s, "allocated", "temporary_percent", "temporary", VIEW_PERCENT,
              view_percent(h->all.temporary_count, h->all.allocations))
        ->after = " temporary";
    add_live(s, h, "live");
    view_fact(s, "live", "processes", "processes", VIEW_COUNT, view_number(h->processes))->after =
        report_plural(h->processes, " process", " processes");
    view_fact(s, "mode", "mode", "mode", VIEW_TEXT, view_text(s, mode ? mode : "exact"))->hidden =
        true;
    const char *interval = profile_meta_get(p, "heap_interval");
    if (interval)
        view_fact(s, "sampled", "interval", "interval", VIEW_BYTES,
                  view_number(strtoull(interval, NULL, 10)))
            ->before = "all figures are estimates from one sample every ";
}

void section_heap_line(struct view *v, const struct report *r)
{
    struct heap_sums h;
    if (!heap_recorded(r->selection->profile))
        return;
    heap_sums_init(&h, r->selection);
    bool one = h.processes <= 1;
    struct view_section *s = v->sections.data[v->sections.len - 1];
    view_fact(s, "heap", "heap_peak", "peak of the heap", VIEW_BYTES,
              view_number(one ? h.all.peak : h.tree_peak))
        ->before = "peak ";
    uint64_t time = one ? h.all.peak_time : h.tree_peak_time;
    glue(view_fact(s, "heap", "heap_peak_time", "time of the peak", VIEW_DURATION,
                   view_number(heap_time(r->selection->profile, time))),
         " at ", "");
    view_fact(s, "heap", "heap_live", "live at the end", VIEW_BYTES, view_number(h.all.live))
        ->after = " live at the end";
    heap_sums_release(&h);
}

enum {
    PEAK,
    AT,
    LIVE,
    BLOCKS,
    ALLOCATED,
    ALLOCATIONS,
    TEMPORARY,
    NAME,
    ENDED,
    PID,
    TEMPORARY_BYTES,
    TEMPORARY_COUNT,
    PROGRAMS,
    COLUMNS
};

static void put_sums(struct view_value *row, const struct heap_process *h)
{
    row[LIVE] = view_number(h->live);
    row[BLOCKS] = view_number(h->live_blocks);
    row[ALLOCATED] = view_number(h->allocated);
    row[ALLOCATIONS] = view_number(h->allocations);
    row[TEMPORARY] = view_percent(h->temporary_count, h->allocations);
    row[TEMPORARY_BYTES] = view_number(h->temporary);
    row[TEMPORARY_COUNT] = view_number(h->temporary_count);
}

static void put_process(struct view_section *s, const struct profile *p, uint32_t process,
                        const struct heap_process *h)
{
    const struct profile_process *q = &p->processes.data[process];
    struct text text = TEXT_INIT;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    put_sums(row, h);
    row[PEAK] = view_number(h->peak);
    row[AT] = view_number(heap_time(p, h->peak_time));
    row[PID] = view_number((uint64_t)q->pid);
    row[PROGRAMS] = view_number(h->programs);
    process_text(p, process, &text);
    row[NAME] = view_text(s, text.data);
    text_clear(&text);
    status_text(q, true, &text);
    if (!q->ended || !q->status_known || q->status)
        row[ENDED] = view_text(s, text.data);
    text_release(&text);
}

/* What rows of processes can be added up by. */
#define OF(member) offsetof(struct heap_process, member)
static const size_t summed[] = {OF(live),        OF(live_blocks), OF(allocated),
                                OF(allocations), OF(temporary),   OF(temporary_count)};
#undef OF

static void put_rest(struct view_section *s, const struct heap_sums *h, const struct ranked *rest,
                     size_t count)
{
    struct heap_process sum = {0};
    for (size_t i = 0; i < count; i++) {
        const struct heap_process *q = &h->by_process[rest[i].id];
        for (size_t k = 0; k < sizeof summed / sizeof *summed; k++)
            *(uint64_t *)((char *)&sum + summed[k]) +=
                *(const uint64_t *)((const char *)q + summed[k]);
    }
    struct text name = TEXT_INIT;
    text_add(&name, "… ");
    text_add_count(&name, count);
    text_add(&name, " more");
    struct view_value *row = view_row(s, 0, VIEW_REST);
    put_sums(row, &sum);
    row[NAME] = view_text(s, name.data);
    s->omitted = count;
    text_release(&name);
}

static void section_heaps(struct view *v, const struct profile *p, const struct heap_sums *h,
                          size_t limit)
{
    const struct view_column columns[COLUMNS] = {
        [PEAK] = {"peak", "own peak", VIEW_BYTES},
        [AT] = {"peak_time", "at", VIEW_DURATION, 66},
        [LIVE] = {"live", "live", VIEW_BYTES},
        [BLOCKS] = {"live_blocks", "blocks", VIEW_COUNT, 120},
        [ALLOCATED] = {"allocated", "allocated", VIEW_BYTES},
        [ALLOCATIONS] = {"allocations", "allocations", VIEW_COUNT, 100},
        [TEMPORARY] = {"temporary_percent", "temp", VIEW_PERCENT, 72},
        [NAME] = {"process", "process", VIEW_TEXT},
        [ENDED] = {"ended", "ended", VIEW_TEXT},
        [PID] = {"pid", "pid", VIEW_NUMBER, VIEW_MACHINES},
        [TEMPORARY_BYTES] = {"temporary", "temporary", VIEW_BYTES, VIEW_MACHINES},
        [TEMPORARY_COUNT] = {"temporary_count", "temporary", VIEW_COUNT, VIEW_MACHINES},
        [PROGRAMS] = {"programs", "programs with a heap", VIEW_COUNT, VIEW_MACHINES},
    };
    struct view_section *s = view_add_table(v, "heaps", "Processes", columns, COLUMNS);
    struct ranked *all = memory_array(p->processes.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < p->processes.len; i++)
        if (h->by_process[i].known && h->by_process[i].chosen)
            all[count++] = (struct ranked){i, "", {.self = h->by_process[i].peak}};
    rank(all, count, REPORT_BY_SELF);
    size_t shown = limit && limit < count ? limit : count;
    for (size_t i = 0; i < shown; i++)
        put_process(s, p, all[i].id, &h->by_process[all[i].id]);
    if (shown < count)
        put_rest(s, h, all + shown, count - shown);
    free(all);
}

static void rename_section(struct view *v, const char *title)
{
    struct view_section *s = v->sections.data[v->sections.len - 1];
    s->title = arena_strdup(s->arena, title);
}

static void section_at_peak(struct view *v, const struct report *r, bool whole)
{
    struct heap_part part;
    heap_part_init(&part, r, heap_peak_event(r->selection));
    section_functions(v, &part.r);
    rename_section(v, "Functions at the peak");
    section_path(v, &part.r, whole ? 0 : SCREEN_PATH);
    rename_section(v, "Most of the peak");
    heap_part_release(&part);
}

static void section_of_event(struct view *v, const struct report *r, const char *event,
                             const char *id, const char *title, bool whole)
{
    struct heap_part part;
    heap_part_init(&part, r, event);
    if (!selection_empty(&part.selection))
        section_stacks(v, &part.r, id, title, whole ? 0 : SCREEN_STACKS);
    heap_part_release(&part);
}

/* Apart from all of the above: what an allocator maps is in the heap's figures already. */
static void section_mapped(struct view *v, const struct report *r, bool whole)
{
    const struct profile *p = r->selection->profile;
    if (profile_event_find(p, "heap:mapped") == PROFILE_NONE)
        return;
    section_of_event(v, r, "heap:mapped", "mapped", "Mapped by the program itself, in all", whole);
    section_of_event(v, r, "heap:mapped-live", "mapped_live", "… and still mapped at the end",
                     whole);
    section_of_event(v, r, "heap:for-allocator", "for_allocator",
                     "Mapped by an allocator in the program, in all", whole);
    section_of_event(v, r, "heap:files", "files", "Files that it mapped, in all", whole);
}

/* What the figures cannot tell. */
static void section_caveats(struct view *v, const struct report *r, const struct heap_sums *h)
{
    const struct profile *p = r->selection->profile;
    struct view_section *s = v->sections.data[v->sections.len - 1];
    struct text text = TEXT_INIT;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct heap_process *q = &h->by_process[i];
        if (!q->chosen || !q->left)
            continue;
        text_clear(&text);
        process_text(p, i, &text);
        text_format(&text,
                    " ran %llu programs, one after the other: ", (unsigned long long)q->programs);
        text_add_bytes(&text, q->left);
        text_add(&text, " of what it has live went with the earlier ones");
        view_note(s, NOTE_INFO, text.data);
    }
    text_release(&text);
}

static void section_next_heap(struct view *v, const struct report *r, const struct heap_sums *h)
{
    struct view_section *s = view_add(v, VIEW_COMMANDS, "next", "Next");
    const char *top = report_top_function(s, v);
    if (!heap_recorded(r->selection->profile)) {
        report_suggest(s, r, "report", " --notes", NULL, "why");
        return;
    }
    report_suggest(s, r, "graph", " --heap -o heap.html", NULL, "flame graph of the peak");
    if (h->all.live)
        report_suggest(s, r, "report", " --leaks", NULL, "all that was not freed");
    report_suggest(s, r, "report", " --peaks", NULL, "its ups and downs");
    report_suggest(s, r, "report", " --sizes", NULL, "sizes of allocations");
    if (top)
        report_suggest(s, r, "report", " --mem-lines", top, "its source lines");
    if (!heap_alone(r->selection->profile))
        report_suggest(s, r, "report", " --event cpu", NULL, "its time");
}

void report_heap(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    bool whole = !r->top;
    struct heap_sums h;
    heap_sums_init(&h, r->selection);
    view_init(v, "heap", report_command(p), "functions");
    section_run(v, r);
    section_sums(v, p, &h);
    section_heaps(v, p, &h, whole ? 0 : SCREEN_PROCESSES);
    section_ledger(v, r, &h, whole ? 0 : SCREEN_PROCESSES);
    section_at_peak(v, r, whole);
    section_of_event(v, r, "heap:live", "live", "Live at the end", whole);
    section_of_event(v, r, "heap:temporary", "temporary", "Freed at once", whole);
    section_mapped(v, r, whole);
    section_of_event(v, r, "page-faults", "touched",
                     "Pages touched first, by who touched them (page faults)", whole);
    section_profiler(v, r, true);
    section_accounting(v, r, true);
    section_notes(v, r, whole ? 0 : SCREEN_NOTES);
    section_caveats(v, r, &h);
    section_next_heap(v, r, &h);
    heap_sums_release(&h);
}
