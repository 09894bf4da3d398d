/*
 * Sums by event and stack, of one thread at a time, whether they are in the profile's cells or in
 * samples that stand apart: for writers of sums, whose memory thus grows with stacks and not
 * with samples.
 */
#ifndef SONDE_THREAD_SUMS_H
#define SONDE_THREAD_SUMS_H

#include "formats/format.h"

struct thread_sums {
    const struct profile *p;
    uint32_t event;
    VECTOR(struct profile_cell) items; /* of the thread taken last, each stack and event once */
    VECTOR(uint32_t) stacks;           /* those of the items, sorted */
    VECTOR(uint32_t) next;             /* by item: another of its stack, plus one; 0: none */
    uint32_t *newest;                  /* by stack: its newest item, plus one */

    uint32_t *cells; /* by thread */
    size_t *ends;    /* where those of a thread end */
    struct error failure;
};

/* `event` PROFILE_NONE: all of them. profile_settle has been called. */
void thread_sums_init(struct thread_sums *s, const struct profile *p, uint32_t event);
/* Fills `items` and `stacks`. */
void thread_sums_take(struct thread_sums *s, uint32_t thread);
/* 0, or the first failure to read samples back. */
int thread_sums_release(struct thread_sums *s, struct error *err);

#endif
