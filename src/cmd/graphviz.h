/* Pictures by Graphviz's `dot`, which is asked for when one is wanted. */
#ifndef SONDE_GRAPHVIZ_H
#define SONDE_GRAPHVIZ_H

#include "base/error.h"
#include "base/text.h"

/* An SVG of a graph in its language. FAULT_MISSING if there is no `dot`. */
int graphviz_svg(const struct text *dot, struct text *svg, struct error *err);

#endif
