/*
 * Memory straight from the kernel, because the agent may not touch the heap that it measures. A
 * `struct pages` grows like a vector; what is new in it is zero.
 */
#ifndef SONDE_UNWIND_PAGES_H
#define SONDE_UNWIND_PAGES_H

#include <stddef.h>

struct pages {
    void *data;
    size_t size; /* bytes that may be used */
};

/* Makes room for at least `size` bytes; the data may move. 0 or -ENOMEM. */
int pages_reserve(struct pages *pages, size_t size);
void pages_release(struct pages *pages);

#endif
