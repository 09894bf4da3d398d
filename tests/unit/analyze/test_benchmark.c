/*
 * What comparisons say, on runs that are made up: a machine whose mood changes from run to run, and
 * functions that each have their own noise. Chance is drawn from fixed seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/benchmark.h"

#define RUNS 30
#define TRIALS 20
#define MOST 19 /* of them: 95 of 100 */

enum { READING, SUSPECT, WRITING, FUNCTIONS };

static const char *const names[] = {"reading", "suspect", "writing"};
static const double shares[] = {30e6, 50e6, 20e6};

static const double even[] = {0.02, 0.02, 0.02};
static const double uneven[] = {0.01, 0.04, 0.01}; /* the one that changes is the least steady */
static const double busy[] = {0.02, 0.02, 0.02};   /* and others have the machine as well */

/* From -1 to 1. */
static double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) / (double)(1ull << 52) - 1;
}

/* On a machine with other work, what the kernel does in small pieces beside the program: most runs
 * have little of it, some very much, and in those the program's functions are off as well. */
static void disturb(struct benchmark *b, size_t variant, size_t run, uint64_t *state)
{
    enum { PIECES = 12 };
    bool much = draw(state) > 0.7;
    for (unsigned i = 0; i < PIECES; i++) {
        char name[16];
        snprintf(name, sizeof name, "kernel%u", i);
        size_t at = benchmark_function(b, name, "[kernel]");
        *vector_push(&b->functions.data[at].values[variant]) =
            (much ? 2.4e6 : 0.2e6) * (1 + draw(state));
    }
    for (size_t i = 0; much && i < FUNCTIONS; i++)
        b->functions.data[i].values[variant].data[run] *= 1 + 0.1 * draw(state);
}

/* Two variants; in the second, `suspect` takes `factor` times as long. */
static void make_runs(struct benchmark *b, uint64_t seed, double factor, const double *noise)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    benchmark_init(b);
    benchmark_add_variant(b, "A", "a");
    benchmark_add_variant(b, "B", "b");
    for (size_t run = 0; run < RUNS; run++)
        for (size_t variant = 0; variant < 2; variant++) {
            double mood = 1 + 0.15 * draw(&state);
            for (size_t i = 0; i < FUNCTIONS; i++) {
                size_t at = benchmark_function(b, names[i], "app");
                double time = shares[i] * mood * (1 + noise[i] * draw(&state));
                *vector_push(&b->functions.data[at].values[variant]) =
                    i == SUSPECT && variant ? time * factor : time;
            }
            if (noise == busy)
                disturb(b, variant, run, &state);
        }
}

/* Verdicts of TRIALS comparisons: how often each function was called less, the same, or more. */
static void compare(double factor, const double *noise, unsigned out[FUNCTIONS][3])
{
    memset(out, 0, sizeof(unsigned[FUNCTIONS][3]));
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        struct benchmark b;
        struct benchmark_change c[FUNCTIONS + 16];
        make_runs(&b, seed, factor, noise);
        benchmark_compare(&b, true, 1, c);
        for (size_t i = 0; i < FUNCTIONS; i++)
            out[i][c[i].verdict]++;
        benchmark_release(&b);
    }
}

static void test_nothing_changed(void **state)
{
    (void)state;
    unsigned said[FUNCTIONS][3];
    for (int i = 0; i < 2; i++) {
        compare(1, i ? uneven : even, said);
        for (size_t k = 0; k < FUNCTIONS; k++)
            assert_in_range(said[k][BENCHMARK_SAME], MOST, TRIALS);
    }
}

static void test_slower_by_three_percent(void **state)
{
    (void)state;
    unsigned said[FUNCTIONS][3];
    for (int i = 0; i < 2; i++) {
        compare(1.03, i ? uneven : even, said);
        assert_in_range(said[SUSPECT][BENCHMARK_MORE], i ? TRIALS * 6 / 10 : MOST, TRIALS);
        assert_int_equal(said[SUSPECT][BENCHMARK_LESS], 0);
        assert_in_range(said[READING][BENCHMARK_SAME], MOST, TRIALS);
        assert_in_range(said[WRITING][BENCHMARK_SAME], MOST, TRIALS);
    }
}

/* A busy machine hides none of it, and makes up nothing. */
static void test_disturbed(void **state)
{
    (void)state;
    unsigned said[FUNCTIONS][3];
    compare(1.03, busy, said);
    assert_in_range(said[SUSPECT][BENCHMARK_MORE], MOST, TRIALS);
    assert_in_range(said[READING][BENCHMARK_SAME], MOST, TRIALS);
    assert_in_range(said[WRITING][BENCHMARK_SAME], MOST, TRIALS);
    compare(1, busy, said);
    for (size_t k = 0; k < FUNCTIONS; k++)
        assert_in_range(said[k][BENCHMARK_SAME], MOST, TRIALS);
}

/* A hundred functions that a sample met now and then do not hide the one that changed. */
static void test_functions_met_by_chance(void **state)
{
    (void)state;
    struct benchmark b;
    struct benchmark_change c[FUNCTIONS + 100];
    uint64_t draws = 1;
    make_runs(&b, 1, 1.03, even);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "rare%u", i);
        size_t at = benchmark_function(&b, name, "app");
        for (size_t run = 0; run < 2 * RUNS; run++)
            *vector_push(&b.functions.data[at].values[run % 2]) = draw(&draws) > 0.8 ? 20e6 : 0;
    }
    benchmark_compare(&b, true, 1, c);
    assert_int_equal(c[SUSPECT].verdict, BENCHMARK_MORE);
    for (size_t i = FUNCTIONS; i < FUNCTIONS + 100; i++)
        assert_true(c[i].p < 0); /* not asked */
    benchmark_release(&b);
}

static void test_faster(void **state)
{
    (void)state;
    unsigned said[FUNCTIONS][3];
    compare(0.9, uneven, said);
    assert_in_range(said[SUSPECT][BENCHMARK_LESS], MOST, TRIALS);
    assert_in_range(said[READING][BENCHMARK_SAME], MOST, TRIALS);
    assert_in_range(said[WRITING][BENCHMARK_SAME], MOST, TRIALS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changed), cmocka_unit_test(test_slower_by_three_percent),
        cmocka_unit_test(test_disturbed),       cmocka_unit_test(test_functions_met_by_chance),
        cmocka_unit_test(test_faster),
    };
    return cmocka_run_group_tests_name("benchmark", tests, NULL, NULL);
}
