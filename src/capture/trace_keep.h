/*
 * The latest calls of a process, in memory: pieces of its threads' streams, the oldest of which
 * goes when there are too many. A piece knows what was open when it began, so that any of them may
 * be the first.
 */
#ifndef SONDE_CAPTURE_TRACE_KEEP_H
#define SONDE_CAPTURE_TRACE_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "capture/trace_tree.h"
#include "recording/writer.h"
#include "wire/trace.h"

#define TRACE_PIECE 2048 /* words */

struct trace_pen;

struct trace_piece {
    struct trace_pen *pen; /* that fills it, or NULL */
    uint32_t thread;       /* in the recording */
    uint64_t begin;        /* ns; words count on from here */
    size_t open_count;
    struct {
        uint32_t id;
        uint64_t begin;
    } * open;
    size_t len;
    /* As in wire/trace.h, but ticks are ns, and the id of what ends is its number from the
     * innermost. */
    uint64_t word[TRACE_PIECE];
};

/* A thread's piece that is being filled. */
struct trace_pen {
    struct trace_piece *piece;
    uint64_t last; /* ns */
};

struct trace_keep {
    size_t max;       /* words; 0: all, and what is full is to be flushed now and then */
    size_t held;      /* with what was open */
    uint64_t dropped; /* calls */
    VECTOR(struct trace_piece *) pieces; /* oldest first, from `first` on */
    size_t first;
};

/* A step that begins a piece, or comes long after the one before. */
void trace_keep_step_rare(struct trace_keep *k, struct trace_pen *pen,
                          const struct trace_tree *tree, uint32_t thread, enum trace_word kind,
                          uint32_t id, uint64_t time);

/* One step of a thread, before the tree has taken it. */
static inline void trace_keep_step(struct trace_keep *k, struct trace_pen *pen,
                                   const struct trace_tree *tree, uint32_t thread,
                                   enum trace_word kind, uint32_t id, uint64_t time)
{
    struct trace_piece *p = pen->piece;
    if (!p || p->len == TRACE_PIECE || time - pen->last > TRACE_DELTA_MAX) {
        trace_keep_step_rare(k, pen, tree, thread, kind, id, time);
        return;
    }
    p->word[p->len++] = trace_pack(kind, id, time - pen->last);
    pen->last = time;
}
/* The thread's innermost call has ended and was shorter than wanted: forgets it, if it was the
 * latest step. True if so. */
bool trace_keep_forget(struct trace_pen *pen, uint32_t id);
/* Writes all that is kept and lets it go; `frame` gives the frame of an id. */
void trace_keep_write(struct trace_keep *k, struct writer *w,
                      uint32_t (*frame)(void *context, uint32_t id), void *context);
/* Writes what is full, without a limit. */
void trace_keep_flush(struct trace_keep *k, struct writer *w,
                      uint32_t (*frame)(void *context, uint32_t id), void *context);
void trace_keep_release(struct trace_keep *k);

#endif
