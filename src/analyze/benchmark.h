/*
 * Repeated runs of one program, or of several beside each other: measurements by run, and what
 * they say. Two variants differ in a measurement if chance would make such a difference in less
 * than 1 of 100 comparisons, all measurements of the comparison taken together (Mann-Whitney
 * corrected after Holm), and if it is worth a word.
 */
#ifndef SONDE_BENCHMARK_H
#define SONDE_BENCHMARK_H

#include "analyze/view.h"
#include "base/text.h"
#include "base/vector.h"

#define BENCHMARK_VARIANTS_MAX 8

struct benchmark_series {
    const char *name;   /* "real", "page-faults", or a function's */
    const char *module; /* of a function, else NULL */
    enum view_kind kind;
    bool judged; /* more of it is worse, and --fail-above goes by it */
    VECTOR(double) values[BENCHMARK_VARIANTS_MAX]; /* by run */
};

struct benchmark_variant {
    const char *name, *command;
    size_t runs, disturbed; /* the second of the first: a CPU was stolen or waited for */
    double stolen, delayed; /* ns over all runs */
};

struct benchmark {
    struct arena arena;
    VECTOR(struct benchmark_variant) variants;
    VECTOR(struct benchmark_series) metrics;
    VECTOR(struct benchmark_series) functions;
    VECTOR(const char *) notes;
    double least; /* part that a change must have to be spoken of: 0.005 */
};

enum benchmark_verdict { BENCHMARK_SAME, BENCHMARK_LESS, BENCHMARK_MORE };

/* One measurement of a later variant against the first. */
struct benchmark_change {
    double change, low, high; /* parts: 0.03 is 3 % more; NaN if unknown. low to high: 95 % */
    double p;                 /* corrected for all that were compared */
    enum benchmark_verdict verdict;
};

void benchmark_init(struct benchmark *b);
void benchmark_release(struct benchmark *b);
struct benchmark_variant *benchmark_add_variant(struct benchmark *b, const char *name,
                                                const char *command);
/* The index of the series of that name, made if need be. */
size_t benchmark_metric(struct benchmark *b, const char *name, enum view_kind kind, bool judged);
size_t benchmark_function(struct benchmark *b, const char *name, const char *module);
/* Functions are not in every run: fills in 0 for runs that had none of it, up to `runs`. */
void benchmark_pad_functions(struct benchmark *b, size_t variant, size_t runs);

/* Every metric (or function) of `variant` against the first variant; `out` has one for each. */
void benchmark_compare(const struct benchmark *b, bool functions, size_t variant,
                       struct benchmark_change *out);
/* Would so few runs not suffice even if every one of a variant took longer than all of the first?
 */
bool benchmark_too_few(const struct benchmark *b);

/* The worst judged growth beyond `percent`: a sentence into `out`, and how many there were. */
size_t benchmark_grown(const struct benchmark *b, double percent, struct text *out);

void benchmark_view(struct view *v, const struct benchmark *b);

#endif
