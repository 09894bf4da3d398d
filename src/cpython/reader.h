/*
 * Reading frames in bulk, for walk.c. From 3.11 on, frames lie one after another in chunks: a chunk
 * is read at once (or, in this process, known to be readable as a whole). What lies elsewhere
 * (3.10's frames, generators, shims on the C stack) is where it was at the last walk, mostly, so
 * all those places are read together before the walk begins.
 */
#ifndef SONDE_CPYTHON_READER_H
#define SONDE_CPYTHON_READER_H

#include "cpython/memory.h"

#define READER_STATE_MAX 4096 /* bytes that a thread's state is smaller than */

struct reader {
    const struct cpython_memory *memory;
    const struct layout *layout;
    size_t frame_size;
    uint64_t start, end;  /* the bytes at hand: of the process ... */
    const uint8_t *data;  /* ... and where they are here */
    uint64_t chunk, high; /* the chunk that they are of: its start, where its frames end */
    uint64_t frame_word;  /* address of the word that points to the innermost frame */
    uint64_t cframe;      /* what the thread's own word says, if that is another */
    uint64_t outer;       /* innermost frame of the call of the loop around this one ... */
    bool outer_known;     /* ... if it is known */
    uint32_t hint, kept;  /* in ahead: next place to look; places kept for the next walk */
    uint64_t keep[CPYTHON_AHEAD_FRAMES];
    uint8_t scratch[LAYOUT_FRAME_MAX];
};

/* Reads what leads to the frames of a thread; *top is its innermost frame or 0. */
bool reader_open(struct reader *r, const struct cpython *py, const struct cpython_memory *memory,
                 uint64_t state, uint64_t *top);

/* The bytes of the frame at `address`, good until the next call, or NULL. */
const uint8_t *reader_frame(struct reader *r, uint64_t address);

/* Remembers for the next walk. */
void reader_close(struct reader *r);

#endif
