/*
 * What is known to be true of a run, as docs/VERIFY.md writes it down, and how far a profile is
 * from it. Pure: text in, claims out; claims and a profile in, findings and a view out.
 */
#ifndef SONDE_ANALYZE_TRUTH_H
#define SONDE_ANALYZE_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/view.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/vector.h"

#define TRUTH_CLAIMS_MAX 100000

enum truth_what { TRUTH_SELF, TRUTH_TOTAL, TRUTH_COUNT, TRUTH_LINE, TRUTH_SUM };

struct truth_claim {
    enum truth_what what;
    const char *kind, *event; /* event: "a|b" takes the first that there is; "" for the usual one */
    const char *name;         /* a function, "file.py:12", or "" */
    const char *within;       /* shares are of this function's; NULL: of all */
    double value;             /* a share in %, or in the event's unit */
    bool share;
    double bound; /* points of a share, else % of the value */
    /* What truth_check found. */
    bool known;      /* the profile has the event */
    double measured; /* as `value` */
    double error;    /* as `bound` */
    enum value_unit unit;
};

struct truth {
    VECTOR(struct truth_claim) claims;
    uint64_t spent; /* CPU ns that the program itself says it used; 0: it does not say */
    struct arena arena;
};

/* The sentence of a fault names the line. Release in every case. */
int truth_parse(struct truth *t, const char *text, struct error *err);
void truth_release(struct truth *t);

/* Fills in what `p` says. */
void truth_check(struct truth *t, const struct profile *p);
/* Means over several runs: adds what another run of the same program claims and shows, and divides
 * by how many there were. FAULT_INPUT if it claims something else. */
int truth_add(struct truth *t, const struct truth *other, struct error *err);
void truth_divide(struct truth *t, unsigned runs);
bool truth_holds(const struct truth_claim *c);

/* What a kind of measurement comes to, over all claims of that kind. */
struct truth_kind {
    const char *name;
    size_t claims, wrong;
    double worst, bound; /* error of the claim nearest to its bound or farthest beyond it */
    bool cost_known;
    double cost, cost_noise, cost_bound; /* more CPU in the target, % */
    uint64_t own;    /* CPU of sonde beside it, from start to finding names, ns */
    const char *why; /* it could not be measured at all; or NULL */
};

/* Sums up the claims of that kind. */
struct truth_kind truth_sum_up(const struct truth *t, const char *kind);
/* Beyond its bounds? Cost counts only as far as it exceeds what runs differ by anyway. */
bool truth_kind_fails(const struct truth_kind *k);

/* Tables: the kinds (if there are any), and every claim, or those that do not hold alone. */
void truth_view_kinds(struct view *v, const struct truth_kind *kinds, size_t count);
void truth_view_claims(struct view *v, const struct truth *const *truths, size_t count,
                       bool wrong_alone);

#endif
