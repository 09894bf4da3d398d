/*
 * What changed between two profiles. Both are put into one, so that names, files and
 * stacks are the same things on both sides; the sides are two selections of it. Functions
 * are matched by name and module (the last part of its path, without a library's version), never
 * by address, so two builds of a program can be compared.
 *
 * Pure, as all of analyze/: profiles in, views and boxes out.
 */
#ifndef SONDE_DIFF_H
#define SONDE_DIFF_H

#include "analyze/flame.h"
#include "analyze/selection.h"
#include "analyze/tree.h"
#include "analyze/view.h"
#include "base/error.h"

enum diff_per {
    DIFF_PER_AUTOMATIC, /* run if durations and totals are about equal, else share */
    DIFF_PER_RUN,       /* values as they were recorded */
    DIFF_PER_SECOND,    /* values divided by the recording's duration */
    DIFF_PER_SHARE,     /* values as parts of their side's total */
};

enum diff_sort { DIFF_BY_SELF, DIFF_BY_TOTAL, DIFF_BY_NAME };

struct diff_side {
    const char *file;
    struct selection selection; /* of the common profile */
    struct tree tree;
    uint64_t duration; /* ns, 0: unknown */
    double scale;      /* values of this side times this can be compared; of the first it is 1 */
};

struct diff {
    const struct profile *profile;
    struct diff_side side[2]; /* before, after */
    enum diff_per per;        /* never automatic */
    bool chosen;              /* ... because we chose it: durations or totals differ */
    struct text warnings;     /* why the two can hardly be compared, if told to do so anyway */
    uint32_t *key;            /* symbol -> first symbol that is the same function */
    /* What the first program of each side is called, where that differs: two builds of one program
     * often have two names. NULL: it does not. */
    char *program[2];
};

struct diff_options {
    const char *file[2];
    enum diff_per per;
    bool anyway; /* also what should not be compared */
    const char *function, *module;
    bool no_inline;
};

/*
 * Moves all of `after` into `before`, which then holds both and must outlive the diff. `chosen` are
 * the parts of each that count. FAULT_INPUT, with the reason, if the two count different things,
 * were recorded in different ways or at different rates. Release in every case.
 */
int diff_init(struct diff *d, struct profile *before, const struct profile *after,
              const struct selection *chosen[2], const struct diff_options *o, struct error *err);
void diff_release(struct diff *d);

/* Each begins a view of its own; `top` 0 is all. */
void diff_functions(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort);
void diff_lines(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort);
void diff_stacks(struct view *v, const struct diff *d, uint64_t top, enum diff_sort sort);

/* Both call trees as one, with the larger of the two at each place, in `t`, and its boxes. The
 * caller releases both. */
void diff_flame(const struct diff *d, double min_percent, struct tree *t, struct flame *f);

/*
 * How many functions have grown, by themselves or with what they call, by more than `points` per
 * cent of the total and beyond what chance explains; `worst` says what the largest did.
 */
size_t diff_grown(const struct diff *d, double points, struct text *worst);

/* Half the width, in per cent, of the interval in which the difference of two shares lies that
 * chance alone may give: `a` of `n` samples and `b` of `m`. */
double diff_noise(uint64_t a, uint64_t n, uint64_t b, uint64_t m);

#endif
