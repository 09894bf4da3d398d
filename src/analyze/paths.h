/* Rows of call trees, shared by the tree itself and by callers and callees (focus.c). */
#ifndef SONDE_PATHS_H
#define SONDE_PATHS_H

#include "analyze/report_internal.h"

struct view_section *path_table(struct view *v, const struct report *r, const char *id,
                                const char *title);
void path_row(struct view_section *s, const struct report *r, const struct tree *t, uint32_t node,
              unsigned depth, enum view_emphasis emphasis);
/* A row that stands for nodes without one; only totals are known. */
void path_rest_row(struct view_section *s, const struct report *r, const struct cost *cost,
                   unsigned depth, const char *name);
/* Everything below `root` that is at least r->min percent, at most r->depth levels. */
void path_tree(struct view_section *s, const struct report *r, const struct tree *t, uint32_t root);

#endif
