/*
 * Traced calls added up by function, and by who called whom, as call tables have them: a call is
 * primitive when its function was not on the stack already; time with all that was called counts
 * for those alone, so that recursion does not count it twice.
 */
#ifndef SONDE_CALLS_H
#define SONDE_CALLS_H

#include "analyze/selection.h"
#include "base/map.h"
#include "base/vector.h"

struct calls_sum {
    uint64_t calls, primitive;
    uint64_t self, total; /* ns */
    uint32_t open;        /* how often on the way down, while it is added up */
};

struct calls_function {
    uint32_t function; /* of the profile, or PROFILE_NONE: `frame` has no symbol */
    uint32_t frame;    /* one of its frames */
    struct calls_sum sum;
};

struct calls_edge {
    uint32_t caller, callee; /* in `functions` */
    struct calls_sum sum;
};

struct calls {
    VECTOR(struct calls_function) functions;
    VECTOR(struct calls_edge) edges;
    struct map function_index, edge_index;
    uint64_t count, primitive, time; /* of all */
};

/* Adds up what `s` chooses, which is cells of the event "calls". */
void calls_init(struct calls *c, const struct selection *s);
void calls_release(struct calls *c);

/* Whether calls were traced. */
bool calls_recorded(const struct profile *p);
/* "fib.py:2(fib0)", "{built-in method builtins.len}", "main (app)". */
void calls_name(const struct profile *p, const struct calls_function *f, struct text *out);

#endif
