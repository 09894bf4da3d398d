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
    uint32_t last_id, last_child;   /* the child entered last ... */
    uint32_t other_id, other_child; /* ... and the one before that was another */
    uint64_t calls, self;           /* ns */
};

struct trace_open {
    uint32_t id, node;
    bool own;              /* a span of the program's: it may outlast the call that began it */
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

/* The node that calls of `id` from `parent` count in, made if need be; `parent` when there are too
 * many. */
uint32_t trace_tree_child(struct trace_tree *t, uint32_t parent, uint32_t id);

static inline void trace_tree_enter(struct trace_tree *t, uint32_t id, bool own, uint64_t time)
{
    uint32_t parent = t->open.len ? t->open.data[t->open.len - 1].node : 0;
    const struct trace_node *p = &t->nodes.data[parent];
    uint32_t node = p->last_id == id    ? p->last_child
                    : p->other_id == id ? p->other_child
                                        : trace_tree_child(t, parent, id);
    t->nodes.data[node].calls += node != parent;
    *vector_push(&t->open) = (struct trace_open){.id = id, .node = node, .own = own, .begin = time};
}

/* The innermost call ends, if that is `id` and no span of the program's; else false. */
static inline bool trace_tree_leave(struct trace_tree *t, uint32_t id, uint64_t time)
{
    struct trace_open *o = t->open.data + t->open.len;
    if (!t->open.len || (--o)->id != id || o->own)
        return false;
    uint64_t all = time > o->begin ? time - o->begin : 0;
    t->nodes.data[o->node].self += all > o->inner ? all - o->inner : 0;
    if (--t->open.len)
        o[-1].inner += all;
    return true;
}

/* Which of those that are open ends next because `id` does, counted from the innermost: it itself,
 * or before it a call within it whose end was lost. TRACE_NONE: it is not open. */
#define TRACE_NONE SIZE_MAX
size_t trace_tree_next_end(const struct trace_tree *t, uint32_t id);
/* The n-th from the innermost ends. */
void trace_tree_end(struct trace_tree *t, size_t n, uint64_t time);

#endif
