/* What grew between two marks that a program set; see heap.h. */
#include <string.h>

#include "analyze/heap.h"

static bool is_named(const struct profile *p, uint32_t frame, const char *name, size_t len)
{
    const struct profile_frame *f = &p->frames.data[frame];
    if (!f->location_count)
        return false;
    uint32_t function = p->locations.data[f->first_location].function;
    const char *text = profile_text(p, p->functions.data[function].name);
    return strlen(text) == len && memcmp(text, name, len) == 0;
}

/* The first mark of this name later than `after`; 0: there is none. */
static uint64_t mark_after(const struct profile *p, const char *name, size_t len, uint64_t after)
{
    uint64_t first = 0;
    for (size_t i = 0; i < p->spans.len; i++) {
        const struct profile_span *s = &p->spans.data[i];
        if (s->mark && s->time > after && (!first || s->time < first) &&
            is_named(p, s->frame, name, len))
            first = s->time;
    }
    return first;
}

int heap_between(const struct profile *p, const char *marks, uint64_t *from, uint64_t *to,
                 struct error *err)
{
    const char *comma = strchr(marks, ',');
    size_t len = comma ? (size_t)(comma - marks) : 0;
    if (!len || !comma[1])
        return error_set(err, FAULT_USAGE,
                         "--between takes the names of two marks with a comma "
                         "between them, not \"%s\"",
                         marks);
    uint64_t first = mark_after(p, marks, len, 0);
    uint64_t second = first ? mark_after(p, comma + 1, strlen(comma + 1), first) : 0;
    if (!second)
        return error_set(err, FAULT_MISSING, "there is no mark \"%.*s\"%s in the recording",
                         first ? (int)strlen(comma + 1) : (int)len, first ? comma + 1 : marks,
                         first ? " after the first" : "");
    *from = first - p->start;
    *to = second - p->start;
    return 0;
}
