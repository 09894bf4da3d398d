/*
 * A growing array of one type:
 *
 *     VECTOR(struct frame) frames = {0};
 *     *vector_push(&frames) = (struct frame){...};
 *     for (size_t i = 0; i < frames.len; i++) use(&frames.data[i]);
 *     vector_release(&frames);
 *
 * `data` moves when it grows: keep indices, not pointers.
 */
#ifndef SONDE_VECTOR_H
#define SONDE_VECTOR_H

#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"

#define VECTOR(type)                                                                               \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/* Room for `need` items in all; doubles, so that pushing is O(1). */
static inline void *vector_reserve_raw(void *data, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return data;
    size_t cap_new = *cap ? *cap : 8;
    while (cap_new < need)
        cap_new *= 2;
    *cap = cap_new;
    return memory_grow(data, cap_new, size);
}

#define vector_reserve(v, need)                                                                    \
    ((v)->data = vector_reserve_raw((v)->data, &(v)->cap, (need), sizeof *(v)->data))

/* Pointer to a new last item, not zeroed. */
#define vector_push(v) (vector_reserve((v), (v)->len + 1), &(v)->data[(v)->len++])

#define vector_release(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

#endif
