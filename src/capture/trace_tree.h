/*
 * The calls of one thread as they come: what is open, and the tree of all calls so far, each node
 * with how often it was called and its own time. From the tree everything a table of calls shows
 * can be told, however many calls there were.
 */
#ifndef SONDE_CAPTURE_TRACE_TREE_H
#define SONDE_CAPTURE_TRACE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vector.h"

#define TRACE_NODES_MAX                                                                            \
    ((size_t)1 << 20) /* of one thread; deeper calls then join their caller's                      \
                       */

struct trace_node {
    uint32_t parent, id;
    uint32_t last_id, last_child; /* the child entered last */
    uint64_t calls, self;         /* ns */
};

struct trace_open {
    uint32_t id, node;
    uint64_t begin, inner; /* when; time in what it called */
};

struct trace_tree {
    VECTOR(struct trace_node) nodes; /* 0 is the root */
    VECTOR(struct trace_open) open;
    struct map children; /* (parent, id) -> node */
    uint64_t folded;     /* calls that found no node of their own */
};

void trace_tree_init(struct trace_tree *t);
void trace_tree_release(struct trace_tree *t);

void trace_tree_enter(struct trace_tree *t, uint32_t id, uint64_t time);
/* How many calls end with this one: 1, more if ends were lost, 0 if its beginning was. */
size_t trace_tree_leave(struct trace_tree *t, uint32_t id, uint64_t time);
/* The innermost call ends. */
void trace_tree_pop(struct trace_tree *t, uint64_t time);

#endif
