/* See trace_tree.h. */
#include "capture/trace_tree.h"

#include <string.h>

void trace_tree_init(struct trace_tree *t)
{
    *t = (struct trace_tree){0};
    *vector_push(&t->nodes) = (struct trace_node){.last_id = UINT32_MAX, .other_id = UINT32_MAX};
}

void trace_tree_release(struct trace_tree *t)
{
    vector_release(&t->nodes);
    vector_release(&t->open);
    map_release(&t->children);
}

uint32_t trace_tree_child(struct trace_tree *t, uint32_t parent, uint32_t id)
{
    bool added = false;
    uint64_t key = (uint64_t)parent << 32 | id, fresh = t->nodes.len;
    const uint64_t *found = t->nodes.len < TRACE_NODES_MAX
                                ? map_put(&t->children, key, 0, fresh, &added)
                                : map_get(&t->children, key, 0);
    if (!found) {
        t->folded++;
        return parent;
    }
    uint32_t child = (uint32_t)*found;
    if (added)
        *vector_push(&t->nodes) = (struct trace_node){
            .parent = parent, .id = id, .last_id = UINT32_MAX, .other_id = UINT32_MAX};
    struct trace_node *p = &t->nodes.data[parent];
    p->other_id = p->last_id;
    p->other_child = p->last_child;
    p->last_id = id;
    p->last_child = child;
    return child;
}

void trace_tree_end(struct trace_tree *t, size_t n, uint64_t time)
{
    size_t at = t->open.len - 1 - n;
    struct trace_open o = t->open.data[at];
    uint64_t all = time > o.begin ? time - o.begin : 0;
    t->nodes.data[o.node].self += all > o.inner ? all - o.inner : 0;
    if (at)
        t->open.data[at - 1].inner += all;
    memmove(t->open.data + at, t->open.data + at + 1, n * sizeof *t->open.data);
    t->open.len--;
}

size_t trace_tree_next_end(const struct trace_tree *t, uint32_t id)
{
    size_t at = t->open.len;
    while (at && t->open.data[at - 1].id != id)
        at--;
    if (!at)
        return TRACE_NONE;
    for (size_t i = t->open.len; i > at && !t->open.data[at - 1].own; i--)
        if (!t->open.data[i - 1].own)
            return t->open.len - i;
    return t->open.len - at;
}
