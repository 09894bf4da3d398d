/* Who called whom, by function, with values: what callgrind and DOT files hold. */
#ifndef SONDE_CALL_GRAPH_H
#define SONDE_CALL_GRAPH_H

#include "formats/places.h"

struct call_node {
    uint32_t place;       /* one of its places, for its name */
    uint32_t open;        /* while adding up: how often it is on the path in hand */
    uint64_t self, total; /* total counts a stack once, however often the function is in it */
};

/* Value of one line of a function itself, or of the calls it makes from there; counted once for
 * a stack as well. */
struct call_edge {
    uint32_t from, line, to; /* nodes; to PROFILE_NONE: the line's own value */
    uint32_t open;
    uint64_t value, count;
};

struct call_graph {
    const struct profile *p;
    struct places places;
    VECTOR(struct call_node) nodes;
    VECTOR(struct call_edge) edges;
    uint64_t total;
};

/* Adds up one event over all threads. To be released in any case. */
int call_graph_init(struct call_graph *g, const struct profile *p, uint32_t event,
                    enum weight weight, struct error *err);
void call_graph_release(struct call_graph *g);

#endif
