/* What resident memory was made of when there was most of it; see heap_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "analyze/heap_internal.h"
#include "base/memory.h"

enum { RSS, LIVE, KEPT, FRAGMENTED, FILES, SHARED, PSS, AT, NAME, PID, COLUMNS };

/* A curve of a process as a whole, or NULL. */
static const struct profile_series *series_of(const struct profile *p, uint32_t process,
                                              const char *name)
{
    for (size_t i = 0; i < p->series.len; i++) {
        const struct profile_series *s = &p->series.data[i];
        if (s->process == process && s->thread == PROFILE_NONE && s->points.len &&
            !strcmp(profile_text(p, s->name), name))
            return s;
    }
    return NULL;
}

static struct view_value value_at(const struct profile *p, uint32_t process, const char *name,
                                  uint64_t time)
{
    const struct profile_series *s = series_of(p, process, name);
    const struct profile_point *best = NULL;
    for (size_t i = 0; s && i < s->points.len; i++)
        if (s->points.data[i].time <= time || !best)
            best = &s->points.data[i];
    return best ? view_number((uint64_t)best->value) : (struct view_value){0};
}

const struct profile_point *heap_highest(const struct profile_series *s)
{
    const struct profile_point *best = &s->points.data[0];
    for (size_t i = 1; i < s->points.len; i++)
        if (s->points.data[i].value > best->value)
            best = &s->points.data[i];
    return best;
}

static void put_process(struct view_section *s, const struct profile *p, uint32_t process)
{
    const struct profile_point *top = heap_highest(series_of(p, process, "rss"));
    struct view_value *row = view_row(s, 0, VIEW_PLAIN);
    struct view_value anonymous = value_at(p, process, "rss:anonymous", top->time);
    struct text name = TEXT_INIT;
    row[RSS] = view_number((uint64_t)top->value);
    row[LIVE] = value_at(p, process, "heap", top->time);
    if (anonymous.known && row[LIVE].known)
        row[KEPT] = view_number(
            anonymous.number > row[LIVE].number ? anonymous.number - row[LIVE].number : 0);
    if (row[KEPT].known && anonymous.number)
        row[FRAGMENTED] = view_percent(row[KEPT].number, anonymous.number);
    row[FILES] = value_at(p, process, "rss:file", top->time);
    row[SHARED] = value_at(p, process, "rss:shared", top->time);
    row[PSS] = value_at(p, process, "pss", top->time);
    row[AT] = view_number(heap_time(p, top->time));
    row[PID] = view_number((uint64_t)p->processes.data[process].pid);
    process_text(p, process, &name);
    row[NAME] = view_text(s, name.data);
    text_release(&name);
}

void section_ledger(struct view *v, const struct report *r, const struct heap_sums *h, size_t limit)
{
    const struct view_column columns[COLUMNS] = {
        [RSS] = {"rss", "resident", VIEW_BYTES},
        [LIVE] = {"live", "live heap", VIEW_BYTES},
        [KEPT] = {"kept", "kept, stacks", VIEW_BYTES},
        [FRAGMENTED] = {"fragmented_percent", "unused", VIEW_PERCENT, 100},
        [FILES] = {"file", "files", VIEW_BYTES},
        [SHARED] = {"shared", "shared", VIEW_BYTES, 96},
        [PSS] = {"pss", "PSS", VIEW_BYTES, 84},
        [AT] = {"time", "at", VIEW_DURATION, 110},
        [NAME] = {"process", "process", VIEW_TEXT, .fill = true},
        [PID] = {"pid", "pid", VIEW_NUMBER, VIEW_MACHINES},
    };
    const struct profile *p = r->selection->profile;
    struct ranked *all = memory_array(p->processes.len + 1, sizeof *all);
    size_t count = 0;
    for (uint32_t i = 0; i < p->processes.len; i++) {
        const struct profile_series *s = series_of(p, i, "rss");
        if (s && h->by_process[i].chosen)
            all[count++] = (struct ranked){i, "", {.self = (uint64_t)heap_highest(s)->value}};
    }
    rank(all, count, REPORT_BY_SELF);
    if (count) {
        struct view_section *s = view_add_table(v, "ledger", "Most resident", columns, COLUMNS);
        size_t shown = limit && limit < count ? limit : count;
        for (size_t i = 0; i < shown; i++)
            put_process(s, p, all[i].id);
        s->omitted = count - shown;
    }
    free(all);
}
