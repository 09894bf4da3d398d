/* A counting sort by thread, which keeps the order of times; see thread_order.h. */
#include "formats/thread_order.h"

#include <stdlib.h>

/* Entry i of the samples or of the cells; false if it is of another event. */
static bool get(const struct profile *p, bool timed, size_t i, uint32_t event,
                struct thread_value *out)
{
    if (timed) {
        const struct profile_sample *s = &p->samples.data[i];
        uint64_t time = s->time > p->start ? s->time - p->start : 0;
        *out = (struct thread_value){time, s->value, s->thread, s->stack};
        return s->event == event;
    }
    const struct profile_cell *c = &p->cells.data[i];
    *out = (struct thread_value){0, c->value, c->thread, c->stack};
    return c->event == event;
}

void thread_order_init(struct thread_order *o, const struct profile *p, uint32_t event)
{
    struct thread_value v;
    *o = (struct thread_order){.timed = format_is_timed(p, event)};
    size_t n = o->timed ? p->samples.len : p->cells.len;
    size_t *at = memory_array(p->threads.len + 2, sizeof *at);
    for (size_t i = 0; i < n; i++)
        if (get(p, o->timed, i, event, &v))
            at[v.thread + 1]++;
    for (size_t i = 0; i < p->threads.len; i++)
        at[i + 1] += at[i];
    o->len = at[p->threads.len];
    o->data = memory_array(o->len + 1, sizeof *o->data);
    for (size_t i = 0; i < n; i++)
        if (get(p, o->timed, i, event, &v))
            o->data[at[v.thread]++] = v;
    free(at);
}

void thread_order_release(struct thread_order *o)
{
    free(o->data);
}

size_t thread_order_end(const struct thread_order *o, size_t from)
{
    size_t end = from;
    while (end < o->len && o->data[end].thread == o->data[from].thread)
        end++;
    return end;
}
