/* The values of one event, thread by thread and in each in the order of their times. */
#ifndef SONDE_THREAD_ORDER_H
#define SONDE_THREAD_ORDER_H

#include "formats/format.h"

struct thread_value {
    uint64_t time; /* since the profile's start; 0 if no times are known */
    uint64_t value;
    uint32_t stack;
};

struct thread_order {
    const struct profile *p;
    uint32_t event;
    bool timed; /* one value a sample; else one a stack */

    uint32_t *cells;  /* if not timed: cells by thread */
    size_t *ends;     /* where those of a thread end */
    bool *has_values; /* by thread */

    struct samples_cursor samples; /* of the thread in hand */
    size_t at, end;
    struct error failure;
};

void thread_order_init(struct thread_order *o, const struct profile *p, uint32_t event);
/* 0, or the first failure to read samples back. */
int thread_order_release(struct thread_order *o, struct error *err);
/* Is there anything of this thread? */
bool thread_order_has(const struct thread_order *o, uint32_t thread);
/* The values of a thread, one call each; a thread may be gone through several times. */
void thread_order_begin(struct thread_order *o, uint32_t thread);
bool thread_order_next(struct thread_order *o, struct thread_value *out);

#endif
