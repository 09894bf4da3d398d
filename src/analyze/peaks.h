/* The peaks of a curve: a maximum counts once the curve has fallen by enough after it. */
#ifndef SONDE_PEAKS_H
#define SONDE_PEAKS_H

#include "analyze/curves.h"
#include "analyze/heap.h"

struct peak {
    uint64_t time, value;
    uint64_t rise; /* above the lowest point since the peak before */
};

struct peaks {
    VECTOR(struct peak) all; /* in the order of time */
};

void peaks_init(struct peaks *p, const struct curve *c, const struct peaks_options *o);
void peaks_release(struct peaks *p);

#endif
