/*
 * The boxes of a flame graph or a flame chart: what stands where, in the order in
 * which a walk meets them (each box, then all that stands on it). Graph: x is value, from
 * a tree. Chart: x is time, from the samples, one lane a thread; box and lane are the same thing.
 *
 * Symbols are those of the tree, which must outlive the flame.
 */
#ifndef SONDE_FLAME_H
#define SONDE_FLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree.h"

struct flame_box {
    uint32_t symbol; /* of the tree */
    uint32_t node;   /* of the tree; 0 in a chart */
    uint32_t depth;  /* 0: the root, or a lane */
    uint32_t line;   /* 0: several, or unknown */
    bool inlined;
    uint64_t start, width; /* in the unit of x */
    uint64_t self, total;  /* in the unit of the selection */
    uint64_t self_count, total_count;
    uint64_t before, after; /* of two profiles: totals in the unit of x */
};

struct flame {
    struct tree *tree;
    VECTOR(struct flame_box) boxes;
    bool compares;   /* two profiles: x is the larger of the two, box by box */
    bool chart;      /* x is time in ns since the recording's start */
    uint64_t extent; /* x ends here */
    uint32_t depth;  /* of the deepest box */
    uint64_t pruned; /* boxes left out because they were narrower than asked for */
};

/* Boxes of a sorted tree; those narrower than `min_percent` of the whole are left out. */
void flame_from_tree(struct flame *f, struct tree *t, double min_percent);
/*
 * Boxes of the profile's samples (load_options.keep_samples) that `s` chooses; `t` is a tree of
 * the same selection without levels, and gets a symbol for every lane. A sample stands for
 * the time before it that it was taken for; neighbours with the same callers share their boxes.
 * To be released in every case.
 */
int flame_from_samples(struct flame *f, struct tree *t, const struct selection *s,
                       double min_percent, struct error *err);
/* Boxes of the profile's spans (load_options.keep_spans) of the threads that `s` chooses. */
void flame_from_spans(struct flame *f, struct tree *t, const struct selection *s,
                      double min_percent);
void flame_release(struct flame *f);

#endif
