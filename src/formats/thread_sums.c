/* Cells sorted by thread, then the samples that are in none; see thread_sums.h. */
#include "formats/thread_sums.h"

#include <stdlib.h>

static bool is_wanted(const struct thread_sums *s, uint32_t event)
{
    return s->event == PROFILE_NONE || s->event == event;
}

/* A counting sort. */
static void sort_cells(struct thread_sums *s)
{
    const struct profile *p = s->p;
    size_t *at = s->ends = memory_array(p->threads.len + 2, sizeof *at);
    for (size_t i = 0; i < p->cells.len; i++)
        if (is_wanted(s, p->cells.data[i].event))
            at[p->cells.data[i].thread + 1]++;
    for (size_t i = 0; i < p->threads.len; i++)
        at[i + 1] += at[i];
    s->cells = memory_array(at[p->threads.len] + 1, sizeof *s->cells);
    for (uint32_t i = 0; i < p->cells.len; i++)
        if (is_wanted(s, p->cells.data[i].event))
            s->cells[at[p->cells.data[i].thread]++] = i;
}

void thread_sums_init(struct thread_sums *s, const struct profile *p, uint32_t event)
{
    *s = (struct thread_sums){.p = p, .event = event};
    s->newest = memory_array(p->stacks.len + 1, sizeof *s->newest);
    sort_cells(s);
}

int thread_sums_release(struct thread_sums *s, struct error *err)
{
    vector_release(&s->items);
    vector_release(&s->next);
    vector_release(&s->stacks);
    free(s->newest);
    free(s->cells);
    free(s->ends);
    return s->failure.fault ? error_set(err, s->failure.fault, "%s", s->failure.text) : 0;
}

static void add(struct thread_sums *s, const struct profile_cell *c)
{
    for (uint32_t i = s->newest[c->stack]; i; i = s->next.data[i - 1]) {
        struct profile_cell *known = &s->items.data[i - 1];
        if (known->event == c->event) {
            known->count += c->count;
            known->value += c->value;
            return;
        }
    }
    if (!s->newest[c->stack])
        *vector_push(&s->stacks) = c->stack;
    *vector_push(&s->items) = *c;
    *vector_push(&s->next) = s->newest[c->stack];
    s->newest[c->stack] = (uint32_t)s->items.len;
}

static void add_samples(struct thread_sums *s, uint32_t event, uint32_t thread)
{
    struct samples_cursor c;
    struct profile_sample x;
    samples_begin(&c, &s->p->samples, event, thread);
    while (samples_next(&c, &x))
        add(s, &(struct profile_cell){event, thread, x.stack, 1, x.value});
    samples_end(&c, &s->failure);
}

static int compare_stacks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void thread_sums_take(struct thread_sums *s, uint32_t thread)
{
    const struct profile *p = s->p;
    for (size_t i = 0; i < s->stacks.len; i++)
        s->newest[s->stacks.data[i]] = 0;
    s->items.len = s->next.len = s->stacks.len = 0;
    for (size_t i = thread ? s->ends[thread - 1] : 0; i < s->ends[thread]; i++)
        add(s, &p->cells.data[s->cells[i]]);
    for (uint32_t e = 0; p->samples_apart && e < p->events.len; e++)
        if (is_wanted(s, e) && profile_is_timed(p, e))
            add_samples(s, e, thread);
    if (s->stacks.len)
        qsort(s->stacks.data, s->stacks.len, sizeof *s->stacks.data, compare_stacks);
}
