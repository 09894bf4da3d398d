/* Statistics of one and of two samples; see statistics.h. */
#include "analyze/statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

#define DRAWS 1000
#define EXACT_MAX 400 /* product of the sizes up to which ranks are counted out */
#define OUTLIER 3.5
#define MAD_TO_SIGMA 1.4826

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *sorted(const double *values, size_t n)
{
    double *copy = memory_dup(values, n * sizeof *values);
    qsort(copy, n, sizeof *copy, compare);
    return copy;
}

double statistics_mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return n ? sum / (double)n : 0;
}

double statistics_deviation(const double *values, size_t n)
{
    double mean = statistics_mean(values, n), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

static double quantile_of_sorted(const double *s, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? s[i] + (at - (double)i) * (s[i + 1] - s[i]) : s[n - 1];
}

double statistics_quantile(const double *values, size_t n, double q)
{
    if (!n)
        return 0;
    double *s = sorted(values, n), result = quantile_of_sorted(s, n, q);
    free(s);
    return result;
}

double statistics_median(const double *values, size_t n)
{
    return statistics_quantile(values, n, 0.5);
}

size_t statistics_outliers(const double *values, size_t n, bool *out)
{
    double *away = memory_array(n ? n : 1, sizeof *away), median = statistics_median(values, n);
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(values[i] - median);
    double sigma = statistics_median(away, n) * MAD_TO_SIGMA;
    /* Counts that hardly ever change have no deviation: one more or less is then no outlier. */
    double least = fabs(median) * 0.01;
    for (size_t i = 0; i < n; i++) {
        bool far = n >= 4 && away[i] > OUTLIER * (sigma > least ? sigma : least);
        found += far;
        if (out)
            out[i] = far;
    }
    free(away);
    return found;
}

struct ranked {
    double value;
    bool first;
};

static int compare_ranked(const void *a, const void *b)
{
    return compare(&((const struct ranked *)a)->value, &((const struct ranked *)b)->value);
}

/* Sum of the ranks of the first sample, and the sum of t^3 - t over ties of t. */
static double rank_sum(struct ranked *all, size_t n, double *ties)
{
    double sum = 0;
    qsort(all, n, sizeof *all, compare_ranked);
    *ties = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && !(all[end].value > all[i].value);)
            end++;
        double tied = (double)(end - i), rank = (double)(i + end + 1) / 2;
        *ties += tied * tied * tied - tied;
        for (size_t k = i; k < end; k++)
            sum += all[k].first ? rank : 0;
    }
    return sum;
}

/* P(U <= u), by counting how many orders of n and m values give each U. */
static double exact_below(size_t n, size_t m, size_t u)
{
    /* ways[j][k]: with j of the m values placed, the sum k; the n values are added one by one. */
    size_t width = n * m + 1;
    double *ways = memory_array((m + 1) * width, sizeof *ways);
    for (size_t j = 0; j <= m; j++)
        ways[j * width] = 1;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++)
            for (size_t k = width; k-- > 0;) {
                double with = k >= i ? ways[(j - 1) * width + (k - i)] : 0;
                ways[j * width + k] += with;
            }
    double below = 0, all = 0;
    for (size_t k = 0; k < width; k++) {
        all += ways[m * width + k];
        below += k <= u ? ways[m * width + k] : 0;
    }
    free(ways);
    return below / all;
}

double statistics_mann_whitney(const double *a, size_t n, const double *b, size_t m)
{
    if (!n || !m)
        return 1;
    struct ranked *all = memory_array(n + m, sizeof *all);
    for (size_t i = 0; i < n + m; i++)
        all[i] = (struct ranked){.value = i < n ? a[i] : b[i - n], .first = i < n};
    double ties, total = (double)(n + m), nm = (double)n * (double)m;
    double u = rank_sum(all, n + m, &ties) - (double)n * (double)(n + 1) / 2;
    free(all);
    u = u < nm - u ? u : nm - u;
    double p;
    if (!(ties > 0) && n * m <= EXACT_MAX) {
        p = 2 * exact_below(n, m, (size_t)u);
    } else {
        double variance = nm / 12 * (total + 1 - ties / (total * (total - 1)));
        if (!(variance > 0))
            return 1; /* all are equal */
        double z = (fabs(u - nm / 2) - 0.5) / sqrt(variance);
        p = erfc((z > 0 ? z : 0) / sqrt(2));
    }
    return p < 1 ? p : 1;
}

/* The k-th smallest; reorders. */
static double select_kth(double *v, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                double t = v[i];
                v[i++] = v[j];
                v[j] = t;
                if (!j)
                    break;
                j--;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return v[k];
}

/* The median of all ratios; `room` holds n * m. */
static double change(const double *a, size_t n, const double *b, size_t m, double *room)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++)
            room[i * m + k] = b[k] / a[i];
    return select_kth(room, n * m, n * m / 2) - 1;
}

static bool all_positive(const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(values[i] > 0))
            return false;
    return n > 0;
}

double statistics_change(const double *a, size_t n, const double *b, size_t m)
{
    if (!all_positive(a, n) || !m)
        return NAN;
    double *room = memory_array(n * m, sizeof *room), result = change(a, n, b, m, room);
    free(room);
    return result;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dull;
}

static void resample(const double *from, double *to, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[(size_t)((draw(state) >> 11) % n)];
}

static struct statistics_range middle(double *results, double confidence)
{
    qsort(results, DRAWS, sizeof *results, compare);
    return (struct statistics_range){
        .low = quantile_of_sorted(results, DRAWS, (1 - confidence) / 2),
        .high = quantile_of_sorted(results, DRAWS, (1 + confidence) / 2)};
}

struct statistics_range statistics_change_range(const double *a, size_t n, const double *b,
                                                size_t m, double confidence)
{
    if (!all_positive(a, n) || !m)
        return (struct statistics_range){NAN, NAN};
    uint64_t state = 0x9e3779b97f4a7c15ull;
    double *room = memory_array(n * m, sizeof *room), *x = memory_array(n, sizeof *x),
           *y = memory_array(m, sizeof *y), *results = memory_array(DRAWS, sizeof *results);
    for (size_t i = 0; i < DRAWS; i++) {
        resample(a, x, n, &state);
        resample(b, y, m, &state);
        results[i] = change(x, n, y, m, room);
    }
    struct statistics_range range = middle(results, confidence);
    free(room);
    free(x);
    free(y);
    free(results);
    return range;
}

struct statistics_range statistics_mean_range(const double *values, size_t n, double confidence)
{
    if (n < 2)
        return (struct statistics_range){n ? values[0] : NAN, n ? values[0] : NAN};
    uint64_t state = 0x9e3779b97f4a7c15ull;
    double *x = memory_array(n, sizeof *x), *results = memory_array(DRAWS, sizeof *results);
    for (size_t i = 0; i < DRAWS; i++) {
        resample(values, x, n, &state);
        results[i] = statistics_mean(x, n);
    }
    struct statistics_range range = middle(results, confidence);
    free(x);
    free(results);
    return range;
}

struct place {
    double p;
    size_t at;
};

void statistics_holm(double *p, size_t n)
{
    struct place *order = memory_array(n ? n : 1, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = (struct place){p[i], i};
    qsort(order, n, sizeof *order, compare); /* by p, which stands first */
    double least = 0;
    for (size_t i = 0; i < n; i++) {
        double raised = order[i].p * (double)(n - i);
        least = raised > least ? raised : least;
        p[order[i].at] = least < 1 ? least : 1;
    }
    free(order);
}
