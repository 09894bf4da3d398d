/* Programs of known truth, run alone and under sonde, here and now; see docs/VERIFY.md. */
#ifndef SONDE_VERIFY_RUNS_H
#define SONDE_VERIFY_RUNS_H

#include "analyze/truth.h"

#define VERIFY_KINDS_MAX 16

/* What a program is run with, and which kinds of claims it makes. */
struct verify_workload {
    const char *name;     /* as sonde-truth or truth.py knows it */
    bool python;          /* the latter */
    const char *kinds[4]; /* ended by NULL */
    const char *options[6];
    double cost_bound; /* more CPU in the program, % */
};

extern const struct verify_workload verify_workloads[]; /* ended by an empty name */

struct verify_run {
    const struct verify_workload *workload;
    struct truth truth; /* means over the repetitions */
    struct truth_kind kinds[4];
    size_t kind_count;
};

/* Where sonde-truth (or its Python half) is. */
int verify_program(bool python, char *out, size_t size, struct error *err);

/* Runs it `repeat` times alone and under sonde, in turns. A fault is one of ours; what cannot be
 * measured here is told in the kinds. Release in every case. */
int verify_measure(struct verify_run *r, const struct verify_workload *w, unsigned repeat,
                   struct error *err);
void verify_run_release(struct verify_run *r);

#endif
