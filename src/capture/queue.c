/* See queue.h. */
#include "capture/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct queued *queue_make(size_t native, size_t python, size_t kernel)
{
    struct queued *q = memory_alloc(sizeof *q + (native + kernel) * sizeof(uint64_t) +
                                    2 * python * sizeof(uint32_t));
    q->stack.native = native;
    q->stack.python = python;
    q->stack.address = (uint64_t *)(q + 1);
    q->kernel = q->stack.address + native;
    q->kernel_count = kernel;
    q->stack.frame = (uint32_t *)(q->kernel + kernel);
    q->stack.flags = q->stack.frame + python;
    return q;
}

void queue_add(struct queue *q, struct queued *sample)
{
    *vector_push(&q->waiting) = sample;
}

static int by_time(const void *a, const void *b)
{
    const struct queued *const *x = a, *const *y = b;
    return ((*x)->time > (*y)->time) - ((*x)->time < (*y)->time);
}

/* Drops what was taken and sorts the rest. */
static void put_in_order(struct queue *q)
{
    size_t left = q->waiting.len - q->next;
    if (q->next)
        memmove(q->waiting.data, q->waiting.data + q->next, left * sizeof *q->waiting.data);
    q->waiting.len = q->sorted = left;
    q->next = 0;
    if (left)
        qsort(q->waiting.data, left, sizeof *q->waiting.data, by_time);
}

struct queued *queue_take(struct queue *q, uint64_t until)
{
    if (q->sorted < q->waiting.len)
        put_in_order(q);
    if (q->next == q->waiting.len || q->waiting.data[q->next]->time >= until)
        return NULL;
    return q->waiting.data[q->next++];
}

void queue_release(struct queue *q)
{
    for (size_t i = q->next; i < q->waiting.len; i++)
        free(q->waiting.data[i]);
    vector_release(&q->waiting);
}
