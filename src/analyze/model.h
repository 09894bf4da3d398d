/*
 * What valgrind's model counted, under the names that perf gives to the same things, so that a
 * simulated run fills the same columns as a counted one.
 */
#ifndef SONDE_MODEL_H
#define SONDE_MODEL_H

#include "analyze/view.h"
#include "profile/counts.h"
#include "profile/profile.h"

/* Adds events named as perf's to a profile that was read from cachegrind's or callgrind's files
 * ("Ir" is "instructions", "D1mr" "L1-dcache-load-misses"); sums where perf knows only those. */
void model_translate(struct profile *p);

/* The sums of such a profile as one run of counts. Events that `c` has already stay in their order,
 * and are refused if the model has none such; without any, all that the model knows are added. */
void model_counts(const struct profile *p, struct counts *c, const struct counts_usage *usage);

/* Where they arose: by function, and by line. At most `top` rows each; 0: all. */
void model_places(struct view *v, const struct profile *p, size_t top);

#endif
