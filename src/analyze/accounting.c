/* What the profiler cost, and that nothing was lost in silence; see report_internal.h. */
#include <stdlib.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

/* "5 generated = 4 recorded + 1 lost" */
static void add_balance(struct view_section *s, const char *line, const char *const ids[3],
                        uint64_t recorded, uint64_t lost)
{
    view_fact(s, line, ids[0], "generated", VIEW_COUNT, view_number(recorded + lost))->after =
        " generated";
    struct view_fact *f = view_fact(s, line, ids[1], "recorded", VIEW_COUNT, view_number(recorded));
    f->before = " = ";
    f->after = " recorded";
    f->glued = true;
    f = view_fact(s, line, ids[2], "lost", VIEW_COUNT, view_number(lost));
    f->before = " + ";
    f->after = " lost";
    f->glued = true;
}

/* Every allocation counts once, under heap:allocated: the other events of the heap say what became
 * of it. */
static void add_losses(struct view_section *s, const struct profile *p)
{
    static const char *const of_samples[] = {"generated", "recorded", "lost"};
    static const char *const of_allocations[] = {"allocations_generated", "allocations_recorded",
                                                 "allocations_lost"};
    uint64_t recorded = 0, allocations = 0, failed = 0;
    for (size_t i = 0; i < p->events.len; i++)
        if (!text_starts(profile_text(p, p->events.data[i].name), "heap:"))
            recorded += p->events.data[i].samples;
    for (size_t i = 0; i < p->heaps.len; i++) {
        allocations += p->heaps.data[i].allocations;
        failed += p->heaps.data[i].lost;
    }
    uint64_t lost = profile_lost(p);
    lost -= failed < lost ? failed : lost;
    if (p->heaps.len)
        add_balance(s, "allocations", of_allocations, allocations, failed);
    add_balance(s, "samples", of_samples, recorded, lost);
    struct view_fact *f;
    uint64_t cut = p->cost.stacks_cut, stacks = cut + p->cost.stacks_whole;
    if (!stacks)
        return;
    view_fact(s, "samples", "stacks_cut", "stacks cut short", VIEW_COUNT, view_number(cut));
    f = view_fact(s, "samples", "stacks", "stacks", VIEW_COUNT, view_number(stacks));
    f->before = " of ";
    f->after = " stacks cut";
    f->glued = true;
}

static void add_collector(struct view_section *s, const struct profile *p)
{
    const struct profile_cost *c = &p->cost;
    uint64_t duration = p->end > p->start ? p->end - p->start : 0;
    if (!c->collector_cpu)
        return;
    view_fact(s, "profiler", "collector_cpu", "collector CPU", VIEW_DURATION,
              view_number(c->collector_cpu))
        ->after = " CPU";
    struct view_fact *f = view_fact(s, "profiler", "collector_percent", "collector CPU of the run",
                                    VIEW_PERCENT, view_percent(c->collector_cpu, duration));
    f->before = " (";
    f->after = " of the run)";
    f->glued = true;
}

void section_profiler(struct view *v, const struct report *r, bool brief)
{
    const struct profile *p = r->selection->profile;
    const struct profile_cost *c = &p->cost;
    struct view_section *s = view_add(v, VIEW_FACTS, "profiler", "Profiler");
    add_collector(s, p);
    if (c->target_extra)
        view_fact(s, "profiler", "target_extra", "taken from the target", VIEW_DURATION,
                  view_number(c->target_extra))
            ->after = " taken from the target";
    struct view_fact *f = view_fact(s, "profiler", "collector_rss", "collector memory", VIEW_BYTES,
                                    view_nonzero(c->collector_rss));
    f->after = " memory";
    f->hidden = brief || !c->collector_rss;
    f = view_fact(s, "profiler", "bytes_written", "written", VIEW_BYTES,
                  view_nonzero(c->bytes_written));
    f->after = " written";
    f->hidden = brief || !c->bytes_written;
    add_losses(s, p);
}

static const char *reason_name(enum loss_reason reason)
{
    static const char *const names[] = {
        [LOSS_RING_FULL] = "ring full",   [LOSS_THROTTLED] = "throttled",
        [LOSS_UNREADABLE] = "unreadable", [LOSS_DISK] = "not written",
        [LOSS_STOPPED] = "stopped",
    };
    return reason < LOSS_REASONS ? names[reason] : "unknown";
}

/* "ring full, throttled": why samples of the event were lost. */
static void reasons_of(const struct profile *p, uint32_t event, struct text *out)
{
    bool told[LOSS_REASONS] = {false};
    for (size_t i = 0; i < p->losses.len; i++) {
        const struct profile_loss *l = &p->losses.data[i];
        uint32_t of = l->event < p->events.len ? l->event : PROFILE_NONE;
        if (of != event || !l->count || told[l->reason])
            continue;
        told[l->reason] = true;
        text_format(out, "%s%s", out->len ? ", " : "", reason_name(l->reason));
    }
}

enum { GENERATED, RECORDED, LOST, VALUE, EVENT, WHY, COLUMNS };

static void put_event(struct view_section *s, const struct profile *p, uint32_t event,
                      uint64_t lost)
{
    bool known = event != PROFILE_NONE;
    uint64_t recorded = known ? p->events.data[event].samples : 0;
    struct text why = TEXT_INIT;
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    reasons_of(p, event, &why);
    row[GENERATED] = view_number(recorded + lost);
    row[RECORDED] = view_number(recorded);
    row[LOST] = view_number(lost);
    if (known)
        row[VALUE] = view_number(p->events.data[event].value);
    row[EVENT] = view_text(s, known ? profile_text(p, p->events.data[event].name) : "any");
    if (why.len)
        row[WHY] = view_text(s, why.data);
    text_release(&why);
}

void section_accounting(struct view *v, const struct report *r, bool hidden)
{
    const struct profile *p = r->selection->profile;
    const struct view_column columns[COLUMNS] = {
        [GENERATED] = {"generated", "generated", VIEW_COUNT},
        [RECORDED] = {"recorded", "recorded", VIEW_COUNT},
        [LOST] = {"lost", "lost", VIEW_COUNT},
        [VALUE] = {"value", "value", VIEW_NUMBER, VIEW_MACHINES},
        [EVENT] = {"event", "event", VIEW_TEXT},
        [WHY] = {"why", "why", VIEW_TEXT},
    };
    struct view_section *s = view_add_table(v, "accounting", "Events", columns, COLUMNS);
    uint64_t *lost = memory_array(p->events.len + 1, sizeof *lost);
    for (size_t i = 0; i < p->losses.len; i++) {
        uint32_t event = p->losses.data[i].event;
        lost[event < p->events.len ? event : p->events.len] += p->losses.data[i].count;
    }
    for (uint32_t i = 0; i < p->events.len; i++)
        put_event(s, p, i, lost[i]);
    if (lost[p->events.len])
        put_event(s, p, PROFILE_NONE, lost[p->events.len]);
    s->hidden = hidden;
    free(lost);
}
