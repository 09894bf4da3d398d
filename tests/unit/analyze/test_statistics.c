/* Statistics against figures known from tables, and against distributions that are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyze/benchmark.h"
#include "analyze/counting.h"
#include "analyze/statistics.h"

#define NEAR(a, b, by) assert_true(fabs((a) - (b)) <= (by))

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* A run's time: normal around `mean`, with a long tail now and then, as on a busy machine. */
static double noisy(double mean)
{
    double u = uniform(), v = uniform();
    double normal = sqrt(-2 * log(u > 0 ? u : 1e-9)) * cos(6.283185307179586 * v);
    return mean * (1 + 0.02 * normal) * (uniform() < 0.1 ? 1.2 : 1);
}

static void test_moments(void **unused)
{
    (void)unused;
    const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
    NEAR(statistics_mean(v, 8), 5, 1e-12);
    NEAR(statistics_deviation(v, 8), sqrt(32.0 / 7), 1e-12);
    NEAR(statistics_median(v, 8), 4.5, 1e-12);
    NEAR(statistics_quantile(v, 8, 0.25), 4, 1e-12);
    NEAR(statistics_quantile(v, 8, 1), 9, 1e-12);
    NEAR(statistics_mean(v, 0), 0, 0);
    NEAR(statistics_deviation(v, 1), 0, 0);
}

static void test_outliers(void **unused)
{
    (void)unused;
    const double v[] = {10, 10.1, 9.9, 10.2, 9.8, 10, 15}, same[] = {3, 3, 3, 3, 3};
    bool out[7];
    assert_int_equal(statistics_outliers(v, 7, out), 1);
    assert_true(out[6]);
    assert_int_equal(statistics_outliers(same, 5, NULL), 0);
}

/* Exact probabilities: 3 against 3 apart is 2 of 20; 5 against 5 apart is 2 of 252. */
static void test_exact_ranks(void **unused)
{
    (void)unused;
    const double a[] = {1, 2, 3, 4, 5}, b[] = {6, 7, 8, 9, 10}, c[] = {1.5, 2.5, 3.5, 4.5, 5.5};
    NEAR(statistics_mann_whitney(a, 3, b, 3), 0.1, 1e-12);
    NEAR(statistics_mann_whitney(a, 5, b, 5), 2.0 / 252, 1e-12);
    NEAR(statistics_mann_whitney(b, 5, a, 5), 2.0 / 252, 1e-12);
    /* U = 10 of 25: as tables of the test have it */
    NEAR(statistics_mann_whitney(a, 5, c, 5), 0.6905, 1e-3);
    NEAR(statistics_mann_whitney(a, 0, c, 5), 1, 0);
}

/* All equal: no difference, whatever the numbers. */
static void test_ties(void **unused)
{
    (void)unused;
    const double a[] = {7, 7, 7, 7}, b[] = {7, 7, 7, 7};
    NEAR(statistics_mann_whitney(a, 4, b, 4), 1, 0);
    NEAR(statistics_change(a, 4, b, 4), 0, 1e-12);
}

/* Under no difference, p below 0.05 comes 5 times in 100: for exact and for large samples. */
static void test_false_alarms(void **unused)
{
    (void)unused;
    for (size_t n = 8; n <= 32; n += 24) {
        size_t alarms = 0, trials = 2000;
        for (size_t t = 0; t < trials; t++) {
            double a[32], b[32];
            for (size_t i = 0; i < n; i++) {
                a[i] = noisy(100);
                b[i] = noisy(100);
            }
            alarms += statistics_mann_whitney(a, n, b, n) < 0.05;
        }
        assert_in_range(alarms, 60, 140); /* 100 expected, or less for small n */
    }
}

static void test_change_and_its_range(void **unused)
{
    (void)unused;
    size_t held = 0, trials = 60;
    for (size_t t = 0; t < trials; t++) {
        double a[30], b[30];
        for (size_t i = 0; i < 30; i++) {
            a[i] = noisy(100);
            b[i] = noisy(103);
        }
        struct statistics_range r = statistics_change_range(a, 30, b, 30, 0.95);
        NEAR(statistics_change(a, 30, b, 30), 0.03, 0.03);
        held += r.low <= 0.03 && r.high >= 0.03;
    }
    assert_in_range(held, 50, 60); /* 57 expected */
    const double zero[] = {0, 1}, one[] = {1, 1};
    assert_true(isnan(statistics_change(zero, 2, one, 2)));
}

static void test_holm(void **unused)
{
    (void)unused;
    double p[] = {0.01, 0.04, 0.03, 0.5};
    statistics_holm(p, 4);
    NEAR(p[0], 0.04, 1e-12);
    NEAR(p[1], 0.09, 1e-12);
    NEAR(p[2], 0.09, 1e-12);
    NEAR(p[3], 0.5, 1e-12);
}

static void fill(struct benchmark *b, double slower)
{
    benchmark_init(b);
    benchmark_add_variant(b, "A", "a");
    benchmark_add_variant(b, "B", "b");
    const char *const names[] = {"reading", "suspect", "writing"};
    const double share[] = {30, 50, 20};
    for (size_t run = 0; run < 30; run++)
        for (size_t v = 0; v < 2; v++) {
            double mood = noisy(1), whole = 0; /* of the machine, in this run */
            for (size_t i = 0; i < 3; i++) {
                double time = share[i] * mood * (1 + 0.01 * (uniform() - 0.5));
                time *= v && i == 1 ? slower : 1;
                size_t at = benchmark_function(b, names[i], "app");
                *vector_push(&b->functions.data[at].values[v]) = time;
                whole += time;
            }
            size_t at = benchmark_metric(b, "real", VIEW_DURATION, true);
            *vector_push(&b->metrics.data[at].values[v]) = whole;
        }
}

/* 100 comparisons of a program with itself, and 100 with one function 3 % slower. */
static void test_verdicts(void **unused)
{
    (void)unused;
    size_t quiet = 0, named = 0, wrong = 0;
    for (size_t t = 0; t < 100; t++) {
        struct benchmark b;
        struct benchmark_change c[3];
        struct text worst = TEXT_INIT;
        fill(&b, 1);
        quiet += benchmark_grown(&b, 2, &worst) == 0;
        benchmark_release(&b);
        fill(&b, 1.03);
        benchmark_compare(&b, true, 1, c);
        named += c[1].verdict == BENCHMARK_MORE;
        wrong += c[0].verdict == BENCHMARK_MORE || c[2].verdict == BENCHMARK_MORE;
        NEAR(c[1].change, 0.03, 0.01);
        benchmark_release(&b);
        text_release(&worst);
    }
    assert_in_range(quiet, 95, 100);
    assert_in_range(named, 98, 100);
    assert_int_equal(wrong, 0);
}

static void test_scaling_of_counters(void **unused)
{
    (void)unused;
    struct counts_value v = counts_scale(1000, 100, 25);
    NEAR(v.value, 4000, 1e-9);
    NEAR(v.share, 0.25, 1e-12);
    assert_false(counts_scale(0, 100, 0).known); /* never had a turn */
    assert_true(counts_scale(0, 0, 0).known);    /* never enabled: it is 0 */
    NEAR(counts_minus(v, counts_scale(1500, 100, 100)).value, 2500, 1e-9);
}

static void check_metric(struct counts *c, const struct counts_value *values, const char *event,
                         double expected, const char *unit)
{
    struct counting_metric m;
    counting_metric(c, values, 2000000, counts_find(c, event), &m);
    assert_true(m.known);
    NEAR(m.value, expected, 1e-9);
    assert_string_equal(m.unit, unit);
}

static void test_ratios(void **unused)
{
    (void)unused;
    struct counts c;
    const struct {
        const char *name;
        double value;
    } all[] = {{"task-clock", 1e6},          {"cycles", 3e6},       {"instructions", 6e6},
               {"branches", 1000},           {"branch-misses", 50}, {"L1-dcache-loads", 400},
               {"L1-dcache-load-misses", 8}, {"LLC-loads", 10},     {"LLC-load-misses", 5},
               {"page-faults", 20}};
    counts_init(&c, "x");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        counts_add_event(&c, all[i].name, all[i].name)->timed = i == 0;
    struct counts_value *values = counts_values(&c);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        values[i] = (struct counts_value){.known = true, .value = all[i].value, .share = 1};
    check_metric(&c, values, "task-clock", 0.5, "CPUs utilized");
    check_metric(&c, values, "cycles", 3, "GHz");
    check_metric(&c, values, "instructions", 2, "insn per cycle");
    check_metric(&c, values, "branch-misses", 5, "% of all branches");
    check_metric(&c, values, "L1-dcache-load-misses", 2, "% of all L1-dcache accesses");
    check_metric(&c, values, "LLC-load-misses", 50, "% of all LL-cache accesses");
    check_metric(&c, values, "page-faults", 20, "K/sec");
    counts_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_exact_ranks),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_false_alarms),
        cmocka_unit_test(test_change_and_its_range),
        cmocka_unit_test(test_holm),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_scaling_of_counters),
        cmocka_unit_test(test_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
