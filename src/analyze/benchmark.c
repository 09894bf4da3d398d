/* Benchmarks compared; see benchmark.h. */
#include "analyze/benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

#define ALPHA 0.01
#define SHARE_MIN 0.01 /* of all: functions below are not compared */

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

/* CPU time of all functions, run by run. */
static double *whole_times(const struct benchmark *b, size_t variant, size_t *runs)
{
    *runs = 0;
    for (size_t i = 0; i < b->functions.len; i++)
        if (b->functions.data[i].values[variant].len > *runs)
            *runs = b->functions.data[i].values[variant].len;
    double *whole = memory_array(*runs + 1, sizeof *whole);
    for (size_t i = 0; i < b->functions.len; i++)
        for (size_t k = 0; k < b->functions.data[i].values[variant].len; k++)
            whole[k] += b->functions.data[i].values[variant].data[k];
    return whole;
}

static double variation(const double *values, size_t n)
{
    double mean = statistics_mean(values, n);
    return mean > 0 ? statistics_deviation(values, n) / mean : INFINITY;
}

/*
 * A function's time against that of the rest of its own run, which moves with the machine's mood as
 * it does itself. Used where that is the steadier measure within both variants; NULL elsewhere.
 */
static double *against_rest(const struct benchmark_series *f, size_t variant, const double *whole,
                            size_t n)
{
    double *ratio = memory_array(n + 1, sizeof *ratio);
    for (size_t i = 0; i < n; i++) {
        double rest = whole[i] - f->values[variant].data[i];
        ratio[i] = rest > 0 ? f->values[variant].data[i] / rest : 0;
    }
    return ratio;
}

static void test(const double *a, size_t n, const double *b, size_t m, struct benchmark_change *out)
{
    struct statistics_range range = statistics_change_range(a, n, b, m, 0.95);
    *out = (struct benchmark_change){.change = statistics_change(a, n, b, m),
                                     .low = range.low,
                                     .high = range.high,
                                     .p = statistics_mann_whitney(a, n, b, m)};
}

static void test_function(const struct benchmark_series *f, size_t variant, const double *wholes[2],
                          struct benchmark_change *out)
{
    size_t n = f->values[0].len, m = f->values[variant].len;
    double *a = against_rest(f, 0, wholes[0], n), *b = against_rest(f, variant, wholes[1], m);
    double plain = variation(f->values[0].data, n) + variation(f->values[variant].data, m);
    if (variation(a, n) + variation(b, m) < plain)
        test(a, n, b, m, out);
    else
        test(f->values[0].data, n, f->values[variant].data, m, out);
    free(a);
    free(b);
}

static bool is_worth_testing(const struct benchmark_series *f, size_t variant, double whole)
{
    double a = statistics_mean(f->values[0].data, f->values[0].len);
    double b = statistics_mean(f->values[variant].data, f->values[variant].len);
    return a > whole * SHARE_MIN || b > whole * SHARE_MIN;
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
    double *wholes[2] = {whole_times(b, 0, &runs[0]), whole_times(b, variant, &runs[1])};
    double whole = statistics_mean(wholes[0], runs[0]);
    for (size_t i = 0; i < n; i++) {
        const struct benchmark_series *s = functions ? &b->functions.data[i] : &b->metrics.data[i];
        if (!functions)
            test(s->values[0].data, s->values[0].len, s->values[variant].data,
                 s->values[variant].len, &out[i]);
        else if (is_worth_testing(s, variant, whole))
            test_function(s, variant, (const double *[]){wholes[0], wholes[1]}, &out[i]);
        else
            out[i] = (struct benchmark_change){.change = NAN, .low = NAN, .high = NAN, .p = -1};
    }
    judge(b, out, n);
    free(wholes[0]);
    free(wholes[1]);
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
