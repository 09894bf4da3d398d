/*
 * The merged call tree of a selection: what was on top of what, and what it cost.
 * A node is a symbol under a parent; a symbol is a function (an inlined one is a
 * symbol of its own), an address or module without names, a process, a thread,
 * or the reason for a wait. Node 0 is the root; a parent's index is smaller than its children's.
 *
 * Names point into the profile or the tree's arena: both must outlive their use.
 */
#ifndef SONDE_TREE_H
#define SONDE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/selection.h"
#include "base/arena.h"
#include "base/vector.h"

#define TREE_NONE UINT32_MAX

enum tree_level { TREE_ROOT, TREE_PROCESS, TREE_THREAD, TREE_CODE, TREE_WAIT };

struct tree_symbol {
    const char *name;  /* never NULL */
    uint32_t function; /* or PROFILE_NONE */
    uint32_t module;   /* or PROFILE_NONE */
    enum tree_level level;
    enum code_kind kind; /* of code; CODE_UNKNOWN elsewhere */
    bool without_name;   /* stands for an address or a module */
};

struct tree_node {
    uint32_t parent, first_child, next; /* or TREE_NONE */
    uint32_t symbol;
    uint32_t depth; /* below the root, which is 0 */
    uint32_t line;  /* the one line that all of its samples were on; 0: several, or unknown */
    bool inlined;   /* everywhere, not only in places */
    uint64_t self, total;
    uint64_t self_count, total_count; /* samples */
};

struct tree_options {
    bool callers;    /* bottom-up: below the root the innermost functions, below each its callers */
    bool by_process; /* a level of processes above the stacks, */
    bool by_thread;  /* and of threads */
    bool by_module;  /* code without names is grouped as [libfoo.so], not told apart by address */
    bool by_name;    /* so are functions of which only the place is known: for several builds */
    bool waits;      /* a leaf that says why, under stacks that wait; not with callers */
    uint32_t depth;  /* deepest level of code below the root or thread; 0: no bound */
};

struct tree {
    const struct profile *profile;
    VECTOR(struct tree_symbol) symbols;
    VECTOR(struct tree_node) nodes;
    uint32_t depth; /* of the deepest node */

    uint32_t *slots; /* (parent, symbol) -> node + 1 */
    size_t mask;
    uint32_t *stack_node;   /* stack -> its node, valid where it was placed last */
    uint32_t *event_symbol; /* event -> symbol of waiting for it, or TREE_NONE */
    struct arena arena;
};

enum tree_order { TREE_BY_TOTAL, TREE_BY_SELF, TREE_BY_NAME };

/* `o` may be NULL. Children stand in no order until tree_sort. */
void tree_init(struct tree *t, const struct selection *s, const struct tree_options *o);
/* A tree without samples that shares the symbols of another, which must outlive it. Its nodes come
 * from tree_child and count what the caller adds to them. */
void tree_init_empty(struct tree *t, const struct tree *like);
void tree_release(struct tree *t);
/* The child of `parent` with that symbol, made if it is new. */
uint32_t tree_child(struct tree *t, uint32_t parent, uint32_t symbol);
/* Orders the children of every node; equal ones by name. */
void tree_sort(struct tree *t, enum tree_order order);

static inline const struct tree_symbol *tree_symbol(const struct tree *t, uint32_t node)
{
    return &t->symbols.data[t->nodes.data[node].symbol];
}
/* The node that holds the cells of a chosen (event, stack), in a tree without levels of processes
 * or threads; TREE_NONE if there are none. */
uint32_t tree_node_of(const struct tree *t, uint32_t event, uint32_t stack);
/* "src/app.c:12" of a node, or nothing: the line of its samples if there is one, else the line on
 * which the function starts. */
void tree_place(const struct tree *t, uint32_t node, struct text *out);
void tree_symbol_place(const struct tree *t, const struct tree_symbol *symbol, uint32_t line,
                       struct text *out);

#endif
