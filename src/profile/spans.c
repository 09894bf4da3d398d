/* Spans in the order in which views want them; see profile.h. */
#include <stdlib.h>

#include "profile/profile.h"

static int compare(const void *a, const void *b)
{
    const struct profile_span *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

void profile_sort_spans(struct profile *p)
{
    VECTOR(uint64_t) ends = {0};
    if (p->spans.len)
        qsort(p->spans.data, p->spans.len, sizeof *p->spans.data, compare);
    for (size_t i = 0; i < p->spans.len; i++) {
        struct profile_span *s = &p->spans.data[i];
        if (i && s[-1].thread != s->thread)
            ends.len = 0;
        while (ends.len && ends.data[ends.len - 1] <= s->time)
            ends.len--;
        s->depth = (uint32_t)ends.len;
        if (!s->mark && s->end > s->time)
            *vector_push(&ends) = s->end;
    }
    vector_release(&ends);
}
