/* Where the program waited: off-CPU time by cause, with the heaviest way there. */
#include <stdlib.h>
#include <string.h>

#include "analyze/report_internal.h"
#include "base/memory.h"

#define STACK_STEPS 3

enum { VALUE, PERCENT, TIMES, CAUSE, STACK, EVENT, COLUMNS };

static void put_cause(struct view_section *s, const struct selection *one, const char *name,
                      uint64_t all)
{
    struct tree t;
    struct text stack = TEXT_INIT;
    tree_init(&t, one, &(struct tree_options){.by_module = true});
    hottest_leaf(&t, STACK_STEPS, &stack);
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    row[VALUE] = view_number(t.nodes.data[0].total);
    row[PERCENT] = view_percent(t.nodes.data[0].total, all);
    row[TIMES] = view_number(t.nodes.data[0].total_count);
    row[CAUSE] = view_text(s, name + strlen("off-cpu:"));
    row[STACK] = view_text(s, stack.data);
    row[EVENT] = view_text(s, name);
    text_release(&stack);
    tree_release(&t);
}

/* Every cause that was met, dearest first; `waits` has all of them chosen. */
static struct ranked *rank_causes(const struct selection *waits, size_t *count, uint64_t *sum)
{
    const struct profile *p = waits->profile;
    struct ranked *all = memory_array(p->events.len + 1, sizeof *all);
    for (uint32_t i = 0; i < p->events.len; i++)
        all[i] = (struct ranked){.id = i, .name = profile_text(p, p->events.data[i].name)};
    size_t cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(waits, &cursor));) {
        all[c->event].cost.self += c->value;
        all[c->event].cost.self_count += c->count;
        *sum += c->value;
    }
    for (size_t i = 0; i < p->events.len; i++)
        if (all[i].cost.self_count)
            all[(*count)++] = all[i];
    rank(all, *count, REPORT_BY_SELF);
    return all;
}

void section_waits(struct view *v, const struct report *r)
{
    const struct profile *p = r->selection->profile;
    const struct view_column columns[COLUMNS] = {
        [VALUE] = {"value", "waited", VIEW_DURATION},
        [PERCENT] = {"percent", "%", VIEW_PERCENT, .bar = true},
        [TIMES] = {"samples", "times", VIEW_COUNT},
        [CAUSE] = {"cause", "for", VIEW_TEXT},
        [STACK] = {"stack", "mostly in", VIEW_TEXT, .fill = true, .cut = VIEW_CUT_START},
        [EVENT] = {"event", "event", VIEW_TEXT, VIEW_MACHINES},
    };
    struct selection waits = *r->selection; /* the same threads and stacks, other events */
    waits.event = memory_array(p->events.len + 1, sizeof *waits.event);
    bool any = false;
    for (uint32_t i = 0; i < p->events.len; i++)
        any |= waits.event[i] = selection_event_waits(p, i);
    size_t count = 0;
    uint64_t sum = 0;
    struct ranked *all = any ? rank_causes(&waits, &count, &sum) : NULL;
    if (count) {
        struct view_section *s = view_add_table(v, "waits", "Where it waited", columns, COLUMNS);
        for (size_t i = 0; i < count; i++) {
            memset(waits.event, 0, p->events.len * sizeof *waits.event);
            waits.event[all[i].id] = true;
            put_cause(s, &waits, all[i].name, sum);
        }
    }
    free(all);
    free(waits.event);
}
