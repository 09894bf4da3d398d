/*
 * Spans as far as a window of time can show them: what is wide enough stands for itself, runs of
 * narrower ones stand together, so the number of boxes follows what is looked at and not how many
 * spans there are. The index grows with a profile that is still being fed.
 */
#ifndef SONDE_ANALYZE_SPANS_H
#define SONDE_ANALYZE_SPANS_H

#include "profile/profile.h"

/* Some spans of a thread that follow each other. */
struct spans_block {
    uint64_t last; /* end of the one that ends last */
    bool open;     /* one of them goes on */
};

struct spans_track {
    VECTOR(uint32_t) list; /* of the thread, in the order of their beginnings */
    VECTOR(struct spans_block) blocks;
};

struct spans {
    const struct profile *profile; /* must outlive this */
    size_t seen;                   /* of the profile's spans */
    VECTOR(struct spans_track) tracks;
};

struct spans_window {
    uint64_t from, to;     /* ns since the recording's start */
    uint64_t least;        /* what is narrower stands together */
    const uint8_t *chosen; /* by thread; NULL: all */
    uint32_t depth_max;    /* of spans that are shown */
    size_t limit;          /* of boxes: with more, `least` is made larger */
};

struct spans_box {
    uint64_t start, end; /* ns since the recording's start */
    uint32_t thread, depth;
    uint32_t frame; /* of the longest that it stands for */
    uint64_t count; /* spans that it stands for; 0: a mark, an instant */
};

struct spans_boxes {
    VECTOR(struct spans_box) all; /* by thread, not by depth; those of a depth in order */
    uint64_t least;               /* that was used */
};

void spans_init(struct spans *s, const struct profile *p);
void spans_update(struct spans *s);
void spans_release(struct spans *s);

/* What the window shows; to be released with vector_release(&out->all). */
void spans_show(const struct spans *s, const struct spans_window *w, struct spans_boxes *out);

#endif
