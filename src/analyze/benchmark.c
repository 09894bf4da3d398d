/* Benchmarks compared; see benchmark.h. */
#include "analyze/benchmark.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"

#define ALPHA 0.01
#define SHARE_MIN 0.01 /* of all: functions below are not compared */
#define OTHERS_MIN 0.1 /* of all: less is too little to compare a function with */
#define MANY 20        /* runs are enough to tell variants apart, however much is measured */

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

/* CPU time of all functions together, on average. */
static double mean_whole(const struct benchmark *b, size_t variant)
{
    double whole = 0;
    for (size_t i = 0; i < b->functions.len; i++)
        whole += statistics_mean(b->functions.data[i].values[variant].data,
                                 b->functions.data[i].values[variant].len);
    return whole;
}

/* Between the quartiles: as the tests, which go by rank, it takes no notice of how far out the few
 * runs are that something else disturbed. */
static double spread(const double *values, size_t n)
{
    return statistics_quantile(values, n, 0.75) - statistics_quantile(values, n, 0.25);
}

static double variation(const double *values, size_t n)
{
    double median = statistics_median(values, n);
    return median > 0 ? spread(values, n) / median : INFINITY;
}

/* Large, and met in most runs: of short programs every sample falls on another function, and to
 * ask of each whether it changed would leave no answer about any. */
static bool is_worth_testing(const struct benchmark_series *f, size_t variant, double whole)
{
    double a = statistics_mean(f->values[0].data, f->values[0].len);
    double b = statistics_mean(f->values[variant].data, f->values[variant].len);
    return (a > whole * SHARE_MIN || b > whole * SHARE_MIN) &&
           (statistics_median(f->values[0].data, f->values[0].len) > 0 ||
            statistics_median(f->values[variant].data, f->values[variant].len) > 0);
}

/* What a function is compared with: others of the same run that are not known to have changed, all
 * of them, or those that are large enough to be compared themselves. What the kernel does beside is
 * mostly small, and on a busy machine it varies more than the program. */
enum scope { SCOPE_ALL, SCOPE_LARGE, SCOPES };

struct rest {
    const bool *moved;        /* by function: left out */
    size_t without;           /* left out for trial; SIZE_MAX: none is */
    double *total[SCOPES][2]; /* by run: in the first variant, in the other */
};

static void add_runs(const struct benchmark_series *f, size_t variant, double *total)
{
    for (size_t run = 0; run < f->values[variant].len; run++)
        total[run] += f->values[variant].data[run];
}

static void rest_init(struct rest *r, const struct benchmark *b, size_t variant, double whole,
                      const bool *moved)
{
    *r = (struct rest){.moved = moved, .without = SIZE_MAX};
    for (size_t side = 0; side < 2; side++) {
        size_t runs = 0, of = side ? variant : 0;
        for (size_t i = 0; i < b->functions.len; i++)
            runs = b->functions.data[i].values[of].len > runs ? b->functions.data[i].values[of].len
                                                              : runs;
        for (size_t scope = 0; scope < SCOPES; scope++)
            r->total[scope][side] = memory_array(runs + 1, sizeof(double));
        for (size_t i = 0; i < b->functions.len; i++) {
            if (moved[i])
                continue;
            add_runs(&b->functions.data[i], of, r->total[SCOPE_ALL][side]);
            if (is_worth_testing(&b->functions.data[i], variant, whole))
                add_runs(&b->functions.data[i], of, r->total[SCOPE_LARGE][side]);
        }
    }
}

static void rest_release(struct rest *r)
{
    for (size_t scope = 0; scope < SCOPES; scope++) {
        free(r->total[scope][0]);
        free(r->total[scope][1]);
    }
}

/*
 * A function's times against those of the rest in the same run: they go up and down with the
 * machine's mood as it does itself. Its times as they are where there is little to compare with.
 */
static double *against_rest(const struct benchmark *b, size_t function, size_t variant,
                            const struct rest *r, enum scope scope, double whole)
{
    size_t n = b->functions.data[function].values[variant].len;
    const double *own = b->functions.data[function].values[variant].data;
    const double *trial = r->without == SIZE_MAX || r->without == function
                              ? NULL
                              : b->functions.data[r->without].values[variant].data;
    double *ratio = memory_array(n + 1, sizeof *ratio);
    bool enough = true;
    for (size_t run = 0; run < n; run++) {
        double others = r->total[scope][variant != 0][run] - (r->moved[function] ? 0 : own[run]) -
                        (trial ? trial[run] : 0);
        enough &= others > whole * OTHERS_MIN;
        ratio[run] = own[run] / (others > 0 ? others : 1);
    }
    if (!enough)
        memcpy(ratio, own, n * sizeof *own);
    return ratio;
}

/* The two samples to compare. */
struct pair {
    double *a, *b;
    size_t n, m;
};

static void pair_release(struct pair *p)
{
    free(p->a);
    free(p->b);
}

/* Whichever form is the steadiest within both variants; how far these are apart has no part in
 * it. */
static struct pair steadiest(const struct benchmark *b, size_t function, size_t variant,
                             const struct rest *r, double whole)
{
    const struct benchmark_series *f = &b->functions.data[function];
    struct pair best = {.n = f->values[0].len, .m = f->values[variant].len};
    best.a = memory_dup(f->values[0].data, best.n * sizeof *best.a);
    best.b = memory_dup(f->values[variant].data, best.m * sizeof *best.b);
    double least = variation(best.a, best.n) + variation(best.b, best.m);
    for (enum scope scope = 0; scope < SCOPES; scope++) {
        struct pair p = best;
        p.a = against_rest(b, function, 0, r, scope, whole);
        p.b = against_rest(b, function, variant, r, scope, whole);
        double varies = variation(p.a, p.n) + variation(p.b, p.m);
        bool better = varies < least;
        pair_release(better ? &best : &p);
        best = better ? p : best;
        least = better ? varies : least;
    }
    return best;
}

static void test(const double *a, size_t n, const double *b, size_t m, struct benchmark_change *out)
{
    struct statistics_range range = statistics_change_range(a, n, b, m, 0.95);
    *out = (struct benchmark_change){.change = statistics_change(a, n, b, m),
                                     .low = range.low,
                                     .high = range.high,
                                     .p = statistics_mann_whitney(a, n, b, m)};
}

/* How far the two are apart, in their own spreads. */
static double distance(const struct pair *p)
{
    double both = spread(p->a, p->n) + spread(p->b, p->m);
    double apart = fabs(statistics_median(p->a, p->n) - statistics_median(p->b, p->m));
    return both > 0 ? apart / both : apart > 0 ? INFINITY : 0;
}

/* Is any that has not moved too far from itself for chance? Bonferroni's bound will do here. */
static bool something_moved(const struct benchmark *b, size_t variant, const struct rest *r,
                            double whole)
{
    size_t tested = 0;
    double least = 1;
    for (size_t i = 0; i < b->functions.len; i++) {
        if (!is_worth_testing(&b->functions.data[i], variant, whole))
            continue;
        struct pair one = steadiest(b, i, variant, r, whole);
        double p = statistics_mann_whitney(one.a, one.n, one.b, one.m);
        least = !r->moved[i] && p < least ? p : least;
        tested++;
        pair_release(&one);
    }
    return least * (double)tested < ALPHA;
}

/* How far all that have not moved are from themselves, once `r->without` is left out. */
static double disagreement(const struct benchmark *b, size_t variant, const struct rest *r,
                           double whole)
{
    double sum = 0;
    for (size_t i = 0; i < b->functions.len; i++) {
        if (i == r->without || r->moved[i] ||
            !is_worth_testing(&b->functions.data[i], variant, whole))
            continue;
        struct pair one = steadiest(b, i, variant, r, whole);
        double far = distance(&one);
        sum += far * far;
        pair_release(&one);
    }
    return sum;
}

/*
 * Which functions have changed: as long as some differ, the one without which the rest agrees best
 * with itself. It no longer counts among those that the rest is compared with; else, what one
 * gained all others would seem to lose.
 */
static void find_moved(const struct benchmark *b, size_t variant, double whole, bool *moved)
{
    for (size_t rounds = 0; rounds < b->functions.len; rounds++) {
        struct rest r;
        size_t found = SIZE_MAX;
        double least = INFINITY;
        rest_init(&r, b, variant, whole, moved);
        bool some = something_moved(b, variant, &r, whole);
        for (size_t i = 0; some && i < b->functions.len; i++) {
            if (moved[i] || !is_worth_testing(&b->functions.data[i], variant, whole))
                continue;
            r.without = i;
            double left = disagreement(b, variant, &r, whole);
            if (left < least || found == SIZE_MAX) {
                found = i;
                least = left;
            }
        }
        rest_release(&r);
        if (found == SIZE_MAX)
            break;
        moved[found] = true;
    }
}

static void compare_functions(const struct benchmark *b, size_t variant,
                              struct benchmark_change *out)
{
    double whole = mean_whole(b, 0);
    bool *moved = memory_array(b->functions.len + 1, sizeof *moved);
    struct rest r;
    find_moved(b, variant, whole, moved);
    rest_init(&r, b, variant, whole, moved);
    for (size_t i = 0; i < b->functions.len; i++) {
        out[i] = (struct benchmark_change){.change = NAN, .low = NAN, .high = NAN, .p = -1};
        if (!is_worth_testing(&b->functions.data[i], variant, whole))
            continue;
        struct pair one = steadiest(b, i, variant, &r, whole);
        test(one.a, one.n, one.b, one.m, &out[i]);
        pair_release(&one);
    }
    rest_release(&r);
    free(moved);
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
    if (functions)
        compare_functions(b, variant, out);
    for (size_t i = 0; !functions && i < b->metrics.len; i++) {
        const struct benchmark_series *s = &b->metrics.data[i];
        test(s->values[0].data, s->values[0].len, s->values[variant].data, s->values[variant].len,
             &out[i]);
    }
    judge(b, out, functions ? b->functions.len : b->metrics.len);
}

bool benchmark_too_few(const struct benchmark *b)
{
    double apart[2][MANY];
    size_t n = b->variants.len ? b->variants.data[0].runs : 0;
    if (b->variants.len < 2 || n >= MANY)
        return false;
    for (size_t i = 0; i < n; i++) {
        apart[0][i] = (double)i;
        apart[1][i] = (double)(n + i);
    }
    return statistics_mann_whitney(apart[0], n, apart[1], n) * (double)b->metrics.len >= ALPHA;
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
