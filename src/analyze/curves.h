/*
 * Memory over time: the recording's series "heap" and "rss" of each process, and "heap" of
 * each thread, as steps. The exact peak of a process, which lies between two points of its
 * series, is put into its curve; after a program's end its heap is 0.
 */
#ifndef SONDE_CURVES_H
#define SONDE_CURVES_H

#include "analyze/selection.h"
#include "base/vector.h"

struct curve {
    bool rss;                 /* else heap */
    uint32_t process, thread; /* or PROFILE_NONE: all processes; the whole process */
    uint64_t highest, highest_time;
    VECTOR(struct profile_point) points; /* times since the recording's start, in order */
};

struct curves {
    VECTOR(struct curve) all; /* in the order of the recording's series */
};

/* Of the selected threads and their processes. */
void curves_init(struct curves *c, const struct selection *s);
void curves_release(struct curves *c);

/* The process with the highest peak first; of each its heap, its RSS, then its threads. */
void curves_rank(struct curves *c);
/* What threads held at the peak of each process that has a curve among the first `shown`, numbered
 * in their order: "N: thread>file:line:function=>bytes", a line each. */
void curves_legend(const struct curves *c, const struct selection *s, size_t shown,
                   struct text *out);

/* The heaps of all selected processes together. */
void curve_total(struct curve *c, const struct selection *s);
void curve_release(struct curve *c);
/* Its value at that time: that of the last point not after it. */
uint64_t curve_at(const struct curve *c, uint64_t time);

#endif
