/* From the samples where they have times, else from cells sorted by thread; see thread_order.h. */
#include "formats/thread_order.h"

#include <stdlib.h>

/* A counting sort. */
static void sort_cells(struct thread_order *o)
{
    const struct profile *p = o->p;
    size_t *at = o->ends = memory_array(p->threads.len + 2, sizeof *at);
    for (size_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == o->event)
            at[p->cells.data[i].thread + 1]++;
    for (size_t i = 0; i < p->threads.len; i++)
        at[i + 1] += at[i];
    o->cells = memory_array(at[p->threads.len] + 1, sizeof *o->cells);
    for (uint32_t i = 0; i < p->cells.len; i++)
        if (p->cells.data[i].event == o->event)
            o->cells[at[p->cells.data[i].thread]++] = i;
}

void thread_order_init(struct thread_order *o, const struct profile *p, uint32_t event)
{
    *o = (struct thread_order){.p = p, .event = event, .timed = profile_is_timed(p, event)};
    o->has_values = memory_array(p->threads.len + 1, sizeof *o->has_values);
    if (!o->timed)
        sort_cells(o);
    for (size_t i = 0; o->timed && i < p->samples.lists.len; i++)
        if (p->samples.lists.data[i].event == event)
            o->has_values[p->samples.lists.data[i].thread] = true;
    for (size_t i = 0; !o->timed && i < p->threads.len; i++)
        o->has_values[i] = o->ends[i] > (i ? o->ends[i - 1] : 0);
}

int thread_order_release(struct thread_order *o, struct error *err)
{
    samples_end(&o->samples, &o->failure);
    free(o->cells);
    free(o->ends);
    free(o->has_values);
    return o->failure.fault ? error_set(err, o->failure.fault, "%s", o->failure.text) : 0;
}

bool thread_order_has(const struct thread_order *o, uint32_t thread)
{
    return o->has_values[thread];
}

void thread_order_begin(struct thread_order *o, uint32_t thread)
{
    samples_end(&o->samples, &o->failure);
    if (o->timed) {
        samples_begin(&o->samples, &o->p->samples, o->event, thread);
    } else {
        o->at = thread ? o->ends[thread - 1] : 0;
        o->end = o->ends[thread];
    }
}

bool thread_order_next(struct thread_order *o, struct thread_value *out)
{
    struct profile_sample s;
    if (o->timed) {
        if (!samples_next(&o->samples, &s))
            return false;
        *out = (struct thread_value){s.time > o->p->start ? s.time - o->p->start : 0, s.value,
                                     s.stack};
        return true;
    }
    if (o->at == o->end)
        return false;
    const struct profile_cell *c = &o->p->cells.data[o->cells[o->at++]];
    *out = (struct thread_value){0, c->value, c->stack};
    return true;
}
