/*
 * Statistics of repeated measurements: what they are around, how far they spread, and whether two
 * sets of them differ by more than chance explains. Pure functions of arrays; `values` need not be
 * sorted and are not changed. Random draws come from a fixed seed: the same figures give the same
 * answer.
 */
#ifndef SONDE_STATISTICS_H
#define SONDE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

double statistics_mean(const double *values, size_t n);      /* 0 of none */
double statistics_deviation(const double *values, size_t n); /* of the sample; 0 of fewer than 2 */
double statistics_median(const double *values, size_t n);
double statistics_quantile(const double *values, size_t n, double q); /* 0 to 1, interpolated */

/* Marks values more than 3.5 robust deviations (of the median, by the median absolute deviation)
 * away; returns how many. `out` may be NULL. */
size_t statistics_outliers(const double *values, size_t n, bool *out);

/*
 * Two-sided probability that two samples of one distribution differ in rank as much as these
 * (Mann-Whitney): exact for small samples without ties, else the normal approximation corrected for
 * ties and continuity. 1 if either is empty.
 */
double statistics_mann_whitney(const double *a, size_t n, const double *b, size_t m);

/* By which part b is more than a: the median of b/a - 1 over all pairs (Hodges and Lehmann), which
 * is what the test above is about. NaN if a has a value that is not positive. */
double statistics_change(const double *a, size_t n, const double *b, size_t m);

struct statistics_range {
    double low, high;
};

/* Where statistics_change lies with this confidence (0.95), by bootstrap. */
struct statistics_range statistics_change_range(const double *a, size_t n, const double *b,
                                                size_t m, double confidence);
/* Where the mean lies with this confidence, by bootstrap. */
struct statistics_range statistics_mean_range(const double *values, size_t n, double confidence);

/* Probabilities of several tests, each raised so that the chance of even one false alarm among all
 * stays what it was (Holm). In place. */
void statistics_holm(double *p, size_t n);

#endif
