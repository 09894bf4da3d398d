/* The values of one event, thread by thread and in each in the order of their times. */
#ifndef SONDE_THREAD_ORDER_H
#define SONDE_THREAD_ORDER_H

#include "formats/format.h"

struct thread_value {
    uint64_t time; /* since the profile's start; 0 if no times are known */
    uint64_t value;
    uint32_t thread, stack;
};

struct thread_order {
    struct thread_value *data;
    size_t len;
    bool timed; /* one entry a sample; else one a stack */
};

void thread_order_init(struct thread_order *o, const struct profile *p, uint32_t event);
void thread_order_release(struct thread_order *o);
/* The end of the run of entries with the same thread that begins at `from`. */
size_t thread_order_end(const struct thread_order *o, size_t from);

#endif
