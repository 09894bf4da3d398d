/*
 * Memory over time as a picture: a curve for the heap of each process and thread, a dashed one for
 * what the process has resident, the peak of each process numbered. One self-contained file, as
 * those of flame.h.
 */
#ifndef SONDE_RENDER_CURVES_H
#define SONDE_RENDER_CURVES_H

#include "analyze/curves.h"
#include "base/text.h"

#define CURVES_SHOWN 24 /* more would not be told apart */

struct curves_picture {
    const struct curves *curves; /* in the order of curves_rank */
    const struct profile *profile;
    const char *title;
    uint32_t width;
};

void curves_svg(const struct curves_picture *picture, bool html, struct text *out);

#endif
