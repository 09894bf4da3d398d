/*
 * Flame graphs, icicles and flame charts for a browser or an image viewer: boxes
 * in (analyze/flame.h), one self-contained file out. Nothing is fetched when it is opened, and
 * names from the recording are text in it, never markup.
 */
#ifndef SONDE_RENDER_FLAME_H
#define SONDE_RENDER_FLAME_H

#include <stddef.h>
#include <stdint.h>

#include "analyze/flame.h"
#include "analyze/selection.h"

enum flame_kind {
    FLAME_GRAPH,  /* the root at the bottom */
    FLAME_ICICLE, /* the root at the top */
    FLAME_CHART,  /* x is time; lanes from the top */
};

#define FLAME_WIDTH_MIN 320
#define FLAME_WIDTH_MAX 16384

struct flame_picture {
    const struct flame *flame;
    const struct selection *selection;
    enum flame_kind kind;
    const char *title; /* NULL: what ran */
    uint32_t width;    /* of the SVG, in pixels */
    double min_percent;
};

/* Takes what is written, in pieces; a non-zero result ends the writing and is returned. */
typedef int flame_sink(void *context, const char *data, size_t len);

/* SVG: a picture by itself; in a browser its script adds zoom, search and details. */
int flame_svg(const struct flame_picture *picture, flame_sink *sink, void *context);
/* HTML: the page in render/page/ with the boxes as data. */
int flame_html(const struct flame_picture *picture, flame_sink *sink, void *context);

#endif
