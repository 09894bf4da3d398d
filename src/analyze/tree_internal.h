/* What building a tree shares between its files: symbols, and the steps that a frame adds. */
#ifndef SONDE_TREE_INTERNAL_H
#define SONDE_TREE_INTERNAL_H

#include "analyze/tree.h"

/* What a frame adds to a stack: one step, or several when functions were inlined, outermost first.
 */
struct step {
    uint32_t symbol, line;
    bool inlined;
};

struct tree_steps {
    VECTOR(struct step) steps;
    uint32_t *first; /* by frame, and one more: where its steps start */
};

/* Steps of every frame; the symbols are put into the tree. */
void tree_steps_init(struct tree_steps *st, struct tree *t, bool no_inline,
                     const struct tree_options *o);
void tree_steps_release(struct tree_steps *st);

/* Symbols that are no function of a module: by level, `name` must last as long as the tree. */
uint32_t tree_symbol_add(struct tree *t, enum tree_level level, const char *name);
/* "name (id)", for processes and threads. */
uint32_t tree_symbol_numbered(struct tree *t, enum tree_level level, const char *name, int32_t id);
/* That of a thread which stands by itself: its process is named, too. */
uint32_t tree_symbol_of_thread(struct tree *t, const struct profile *p, uint32_t thread);

/* `len` + 1 times TREE_NONE; the caller frees. */
uint32_t *tree_array_of_none(size_t len);

#endif
