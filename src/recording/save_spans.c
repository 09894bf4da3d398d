/* From spans with a beginning and an end to the steps that a recording holds. */
#include "recording/save_spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vector.h"

struct order {
    uint32_t thread, index;
};

/* Threads one after another, each in the order its spans stand in. */
static int compare(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

struct saving {
    struct writer *w;
    uint32_t thread;
    VECTOR(uint64_t) ends; /* of what is open */
};

/* Which of those that are open ends first; usually the innermost. */
static size_t first_end(const struct saving *s)
{
    size_t best = s->ends.len - 1;
    for (size_t i = best; i-- > 0;)
        if (s->ends.data[i] < s->ends.data[best])
            best = i;
    return best;
}

static void close_until(struct saving *s, uint64_t time)
{
    while (s->ends.len) {
        size_t at = first_end(s), after = s->ends.len - 1 - at;
        uint64_t end = s->ends.data[at];
        if (end > time)
            break;
        writer_span_end_at(s->w, s->thread, end, after);
        memmove(s->ends.data + at, s->ends.data + at + 1, after * sizeof *s->ends.data);
        s->ends.len--;
    }
}

static void put(struct saving *s, const struct profile_span *x, uint32_t frame)
{
    close_until(s, x->time);
    if (x->mark) {
        writer_span_mark(s->w, s->thread, x->time, frame);
        return;
    }
    writer_span_begin(s->w, s->thread, x->time, frame);
    *vector_push(&s->ends) = x->end;
}

void save_spans(const struct profile *p, struct writer *w, const uint32_t *threads,
                const uint32_t *frames)
{
    struct order *order = memory_array(p->spans.len + 1, sizeof *order);
    struct saving s = {.w = w};
    for (size_t i = 0; i < p->spans.len; i++)
        order[i] = (struct order){p->spans.data[i].thread, (uint32_t)i};
    qsort(order, p->spans.len, sizeof *order, compare);
    for (size_t i = 0; i < p->spans.len; i++) {
        const struct profile_span *x = &p->spans.data[order[i].index];
        if (i && order[i].thread != order[i - 1].thread)
            close_until(&s, UINT64_MAX);
        s.thread = threads[x->thread];
        put(&s, x, frames[x->frame]);
    }
    close_until(&s, UINT64_MAX);
    vector_release(&s.ends);
    free(order);
}
