/* Views of a profile by their names, the same as `sonde report --json` gives. */
#ifndef SONDE_LIVE_VIEWS_H
#define SONDE_LIVE_VIEWS_H

#include "analyze/report.h"
#include "base/error.h"
#include "profile/profile.h"

struct views_options {
    const char *event;    /* NULL: cpu, or the first there is */
    const char *function; /* only stacks with it; of callers, callees and lines: which one */
    const char *thread, *module;
    int32_t pid;    /* 0: all */
    uint64_t top;   /* rows; 0: all */
    uint32_t depth; /* of trees; 0: all */
    double min;     /* per cent */
    enum report_sort sort;
    uint64_t peak; /* of "held": which one */
};

typedef void views_use(void *context, const struct view *v);

/* Makes the view of that name (overview, functions, processes, threads, modules, tree, notes,
 * callers, callees, lines, heap, leaks, peaks, ownership, held) and gives it to `use`. `p` is
 * changed: it must be a copy that is not read afterwards. FAULT_MISSING for a name or a function
 * that is not there. */
int views_make(const char *name, struct profile *p, const struct views_options *o, views_use *use,
               void *context, struct error *err);

#endif
