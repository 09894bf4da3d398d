/*
 * Keeps a session to a share of the CPU time that its target uses: measures what recording costs
 * (our own CPU, the agents' time inside the target, the kernel's for its samples) several times a
 * second, and takes fewer samples, of the CPU or of the heap, or looks less often, whichever costs
 * most; more again when there is room. Samples say themselves what they stand for, so sums stay
 * right whatever the rate.
 */
#ifndef SONDE_BUDGET_H
#define SONDE_BUDGET_H

#include <stdint.h>

struct session;
struct budget;

/* From now on: the target runs. */
struct budget *budget_new(struct session *s);
void budget_free(struct budget *b); /* NULL-safe */
/* Once a round. */
void budget_tick(struct budget *b, uint64_t now);
/* How many times as long as usual to wait between two rounds. */
unsigned budget_pace(const struct budget *b);
/* The target has ended; what comes now is not its cost. */
void budget_stop(struct budget *b, uint64_t now);
/* Budget, cost and what was given up, as notes of the recording. */
void budget_tell(struct budget *b);

#endif
