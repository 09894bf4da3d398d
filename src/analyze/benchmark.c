/* Benchmarks compared; see benchmark.h. */
#include "analyze/benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

#define ALPHA 0.01
#define SHARE_MIN 0.01 /* of all: functions below are not compared */
#define MOOD_MIN 0.05  /* of all: functions below have no vote on how fast the machine was */

void benchmark_init(struct benchmark *b)
{
    *b = (struct benchmark){.least = 0.005};
}

static void release_series(struct benchmark_series *s)
{
    for (size_t i = 0; i < BENCHMARK_VARIANTS_MAX; i++)
        vector_release(&s->values[i]);
}

void benchmark_release(struct benchmark *b)
{
    for (size_t i = 0; i < b->metrics.len; i++)
        release_series(&b->metrics.data[i]);
    for (size_t i = 0; i < b->functions.len; i++)
        release_series(&b->functions.data[i]);
    vector_release(&b->variants);
    vector_release(&b->metrics);
    vector_release(&b->functions);
    vector_release(&b->notes);
    arena_release(&b->arena);
}

struct benchmark_variant *benchmark_add_variant(struct benchmark *b, const char *name,
                                                const char *command)
{
    struct benchmark_variant *v = vector_push(&b->variants);
    *v = (struct benchmark_variant){.name = arena_strdup(&b->arena, name),
                                    .command = arena_strdup(&b->arena, command)};
    return v;
}

size_t benchmark_metric(struct benchmark *b, const char *name, enum view_kind kind, bool judged)
{
    for (size_t i = 0; i < b->metrics.len; i++)
        if (!strcmp(b->metrics.data[i].name, name))
            return i;
    *vector_push(&b->metrics) = (struct benchmark_series){
        .name = arena_strdup(&b->arena, name), .kind = kind, .judged = judged};
    return b->metrics.len - 1;
}

size_t benchmark_function(struct benchmark *b, const char *name, const char *module)
{
    for (size_t i = 0; i < b->functions.len; i++)
        if (!strcmp(b->functions.data[i].name, name) &&
            !strcmp(b->functions.data[i].module, module))
            return i;
    *vector_push(&b->functions) =
        (struct benchmark_series){.name = arena_strdup(&b->arena, name),
                                  .module = arena_strdup(&b->arena, module),
                                  .kind = VIEW_DURATION,
                                  .judged = true};
    return b->functions.len - 1;
}

void benchmark_pad_functions(struct benchmark *b, size_t variant, size_t runs)
{
    for (size_t i = 0; i < b->functions.len; i++)
        while (b->functions.data[i].values[variant].len < runs)
            *vector_push(&b->functions.data[i].values[variant]) = 0;
}

/* CPU time of all functions together, on average; and how many runs there are. */
static double mean_whole(const struct benchmark *b, size_t variant, size_t *runs)
{
    double whole = 0;
    *runs = 0;
    for (size_t i = 0; i < b->functions.len; i++) {
        const struct benchmark_series *f = &b->functions.data[i];
        *runs = f->values[variant].len > *runs ? f->values[variant].len : *runs;
        whole += statistics_mean(f->values[variant].data, f->values[variant].len);
    }
    return whole;
}

static double variation(const double *values, size_t n)
{
    double mean = statistics_mean(values, n);
    return mean > 0 ? statistics_deviation(values, n) / mean : INFINITY;
}

/* Large enough to be compared, and to say something of the machine's mood. */
static bool is_worth_testing(const struct benchmark_series *f, size_t variant, double whole)
{
    double a = statistics_mean(f->values[0].data, f->values[0].len);
    double b = statistics_mean(f->values[variant].data, f->values[variant].len);
    return a > whole * SHARE_MIN || b > whole * SHARE_MIN;
}

/*
 * How fast the machine was in each run: the median, over functions, of a function's time against
 * its own mean. Most functions are the same in both variants, so that a few that changed do not
 * move it. NULL with fewer than three functions, which cannot outvote one.
 */
static double *moods(const struct benchmark *b, size_t of, size_t variant, size_t runs,
                     double whole)
{
    double *mood = memory_array(runs + 1, sizeof *mood),
           *votes = memory_array(b->functions.len + 1, sizeof *votes);
    size_t n = 0;
    for (size_t run = 0; run < runs; run++) {
        n = 0;
        for (size_t i = 0; i < b->functions.len; i++) {
            const struct benchmark_series *f = &b->functions.data[i];
            double mean = (statistics_mean(f->values[0].data, f->values[0].len) +
                           statistics_mean(f->values[variant].data, f->values[variant].len)) /
                          2;
            if (mean > whole * MOOD_MIN)
                votes[n++] = f->values[of].data[run] / mean;
        }
        mood[run] = n ? statistics_median(votes, n) : 0;
    }
    free(votes);
    for (size_t run = 0; run < runs; run++)
        if (n < 3 || !(mood[run] > 0)) {
            free(mood);
            return NULL;
        }
    return mood;
}

static double *evened(const double *values, const double *mood, size_t n)
{
    double *even = memory_array(n + 1, sizeof *even);
    for (size_t i = 0; i < n; i++)
        even[i] = values[i] / mood[i];
    return even;
}

static void test(const double *a, size_t n, const double *b, size_t m, struct benchmark_change *out)
{
    struct statistics_range range = statistics_change_range(a, n, b, m, 0.95);
    *out = (struct benchmark_change){.change = statistics_change(a, n, b, m),
                                     .low = range.low,
                                     .high = range.high,
                                     .p = statistics_mann_whitney(a, n, b, m)};
}

/* With the machine's mood taken out, where that makes it steadier within both variants. */
static void test_function(const struct benchmark_series *f, size_t variant, double *mood[2],
                          struct benchmark_change *out)
{
    size_t n = f->values[0].len, m = f->values[variant].len;
    const double *a = f->values[0].data, *b = f->values[variant].data;
    double *x = mood[0] && mood[1] ? evened(a, mood[0], n) : NULL;
    double *y = x ? evened(b, mood[1], m) : NULL;
    if (x && variation(x, n) + variation(y, m) < variation(a, n) + variation(b, m))
        test(x, n, y, m, out);
    else
        test(a, n, b, m, out);
    free(x);
    free(y);
}

static void judge(const struct benchmark *b, struct benchmark_change *c, size_t n)
{
    double *p = memory_array(n + 1, sizeof *p);
    size_t *at = memory_array(n + 1, sizeof *at), tested = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].p >= 0) {
            at[tested] = i;
            p[tested++] = c[i].p;
        }
    statistics_holm(p, tested);
    for (size_t i = 0; i < n; i++)
        c[i].verdict = BENCHMARK_SAME;
    for (size_t i = 0; i < tested; i++) {
        struct benchmark_change *one = &c[at[i]];
        one->p = p[i];
        if (p[i] < ALPHA && fabs(one->change) >= b->least)
            one->verdict = one->change > 0 ? BENCHMARK_MORE : BENCHMARK_LESS;
    }
    free(p);
    free(at);
}

void benchmark_compare(const struct benchmark *b, bool functions, size_t variant,
                       struct benchmark_change *out)
{
    size_t n = functions ? b->functions.len : b->metrics.len, runs[2];
    double whole = mean_whole(b, 0, &runs[0]);
    mean_whole(b, variant, &runs[1]);
    double *mood[2] = {functions ? moods(b, 0, variant, runs[0], whole) : NULL,
                       functions ? moods(b, variant, variant, runs[1], whole) : NULL};
    for (size_t i = 0; i < n; i++) {
        const struct benchmark_series *s = functions ? &b->functions.data[i] : &b->metrics.data[i];
        if (!functions)
            test(s->values[0].data, s->values[0].len, s->values[variant].data,
                 s->values[variant].len, &out[i]);
        else if (is_worth_testing(s, variant, whole))
            test_function(s, variant, mood, &out[i]);
        else
            out[i] = (struct benchmark_change){.change = NAN, .low = NAN, .high = NAN, .p = -1};
    }
    judge(b, out, n);
    free(mood[0]);
    free(mood[1]);
}

static size_t grown_among(const struct benchmark *b, bool functions, size_t variant, double percent,
                          double *worst, struct text *out)
{
    size_t n = functions ? b->functions.len : b->metrics.len, found = 0;
    struct benchmark_change *c = memory_array(n + 1, sizeof *c);
    benchmark_compare(b, functions, variant, c);
    for (size_t i = 0; i < n; i++) {
        const struct benchmark_series *s = functions ? &b->functions.data[i] : &b->metrics.data[i];
        if (!s->judged || c[i].verdict != BENCHMARK_MORE || !(c[i].change * 100 > percent))
            continue;
        found++;
        if (c[i].change <= *worst)
            continue;
        *worst = c[i].change;
        text_clear(out);
        text_format(out, "%s%s of %s is %.1f%% more than of %s (%.1f to %.1f%%)",
                    functions ? "the time of " : "", s->name, b->variants.data[variant].name,
                    c[i].change * 100, b->variants.data[0].name, c[i].low * 100, c[i].high * 100);
    }
    free(c);
    return found;
}

size_t benchmark_grown(const struct benchmark *b, double percent, struct text *out)
{
    double worst = 0;
    size_t found = 0;
    for (size_t v = 1; v < b->variants.len; v++) {
        found += grown_among(b, false, v, percent, &worst, out);
        found += grown_among(b, true, v, percent, &worst, out);
    }
    return found;
}
