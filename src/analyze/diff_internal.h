/* What the files of the diff share: costs of both sides, and how they become rows. */
#ifndef SONDE_DIFF_INTERNAL_H
#define SONDE_DIFF_INTERNAL_H

#include "analyze/diff.h"
#include "analyze/report_internal.h"

/* One function, line or stack on both sides. */
struct change {
    uint32_t id;
    const char *name; /* for the order of equals */
    struct cost cost[2];
};

struct changes {
    VECTOR(struct change) all;
};

/* Costs of functions by d->key; entries without any cost are left out. */
void changes_of_functions(const struct diff *d, struct changes *c);
/* Largest first. */
void changes_sort(struct changes *c, const struct diff *d, enum diff_sort sort);

/* Starts a view with what is compared; adds its table, whose columns the next call fills. `name`
 * heads the column of names; `totals`: rows have totals as well as self. */
struct view_section *change_table(struct view *v, const struct diff *d, const char *id,
                                  const char *title, const char *name, bool totals);
/* A row; the caller sets what is named here. */
enum { CHANGE_NAME = 12, CHANGE_STATE, CHANGE_MODULE, CHANGE_FILE, CHANGE_LINE, CHANGE_COLUMNS };
struct view_value *change_row(struct view_section *s, const struct diff *d,
                              const struct change *at);
/* One row for what a limit leaves out. */
void change_rest(struct view_section *s, const struct diff *d, const struct changes *c,
                 size_t shown, const char *what);

#endif
