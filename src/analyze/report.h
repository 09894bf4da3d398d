/*
 * The tables of `sonde report`: each function turns a selection of a profile into
 * a view. Pure: nothing is read or printed here. Percentages are of the
 * selection's total; a function counts once a sample however often it is on the stack.
 */
#ifndef SONDE_REPORT_H
#define SONDE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/selection.h"
#include "analyze/tree.h"
#include "analyze/view.h"
#include "base/error.h"

enum report_sort { REPORT_BY_SELF, REPORT_BY_TOTAL, REPORT_BY_NAME, REPORT_BY_SAMPLES };

/* Line `line` (from 1) of a source file, without its end; NULL if it cannot be had here. */
typedef const char *report_source_fn(void *context, const char *file, uint32_t line);

struct report {
    const struct selection *selection;
    const struct tree *tree; /* of it, top-down, without waits, sorted by total */
    const char *file;        /* the recording, as typed: for the commands it suggests */
    uint64_t top;            /* rows of a table; 0: all */
    uint64_t from, to;       /* ns since the start, of what was loaded; to 0: the end */
    enum report_sort sort;
    double min;     /* of the call tree: percent below which a branch is gathered up */
    uint32_t depth; /* of the call tree; 0: no bound */
    report_source_fn *source;
    void *source_context;
};

/* The first screen. With top 0 every table is whole. */
void report_overview(struct view *v, const struct report *r);
void report_functions(struct view *v, const struct report *r);
void report_modules(struct view *v, const struct report *r);
void report_processes(struct view *v, const struct report *r);
void report_threads(struct view *v, const struct report *r);
void report_tree(struct view *v, const struct report *r);
void report_notes(struct view *v, const struct report *r);
/* Lines that were counted, function by function; of one function if it is not NULL. */
bool report_lines_counted(const struct profile *p);
int report_counted_lines(struct view *v, const struct report *r, const char *function,
                         struct error *err);
/* Traced calls; the selection is of the event "calls". */
void report_calls(struct view *v, const struct report *r);

/*
 * Who calls `function`, or what it calls, as a tree whose first row is the function itself. Of a
 * recursive function the outermost call counts. FAULT_MISSING if no symbol matches (the caller
 * knows what is spelt alike); the view is to be released in every case.
 */
int report_callers(struct view *v, const struct report *r, const char *function, struct error *err);
int report_callees(struct view *v, const struct report *r, const char *function, struct error *err);
/* Source lines by cost; of one function, in order and with the lines between, if not NULL. */
int report_lines(struct view *v, const struct report *r, const char *function, struct error *err);

#endif
