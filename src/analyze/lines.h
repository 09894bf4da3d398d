/* Costs of source lines, from the stacks themselves: a call tree has merged the lines away. */
#ifndef SONDE_LINES_H
#define SONDE_LINES_H

#include "analyze/report_internal.h"
#include "base/map.h"

struct line {
    uint32_t function; /* first one seen there */
    uint32_t number;
    struct cost cost;
};

struct lines {
    VECTOR(struct line) lines;
    struct map index;          /* (function or file, line) -> line */
    uint64_t self, self_count; /* of samples whose innermost frame has no line */
};

/* By (function, line) if `by_function`, else by (file, line): inlined code counts where it stands.
 */
void lines_init(struct lines *l, const struct selection *s, bool by_function);
void lines_release(struct lines *l);

#endif
