/*
 * What the frames of a profile stand for: symbols, and the steps that a frame adds to
 * a stack. Grows with a profile that is still being fed; a symbol keeps its number for good, so a
 * viewer can be told of new ones alone.
 */
#ifndef SONDE_LEXICON_H
#define SONDE_LEXICON_H

#include "analyze/tree.h"
#include "base/map.h"

/* Of a frame outermost first; all but the first were inlined. */
struct lexicon_step {
    uint32_t symbol, line;
};

struct lexicon {
    const struct profile *profile; /* must outlive this */
    VECTOR(struct tree_symbol) symbols;
    VECTOR(struct lexicon_step) steps;
    VECTOR(uint32_t) first;   /* by frame: where its steps start */
    VECTOR(uint32_t) count;   /* by frame */
    VECTOR(uint32_t) changed; /* by the last update: frames that are new or have got other names */

    struct map index;      /* (name, line and module) -> symbol */
    VECTOR(uint64_t) seen; /* by frame: where its locations stood at the last update */
    struct arena arena;
};

void lexicon_init(struct lexicon *x, const struct profile *p);
void lexicon_update(struct lexicon *x);
void lexicon_release(struct lexicon *x);

#endif
