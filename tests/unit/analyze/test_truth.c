/* Claims, how they are read, and how a profile is measured by them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/truth.h"
#include "sample_profile.h"

static struct sample_profile sample;

static void check(struct truth *t, const char *text)
{
    struct error err = {0};
    assert_int_equal(truth_parse(t, text, &err), 0);
    truth_check(t, &sample.p);
}

static void expect(const struct truth *t, size_t i, double measured, double error, bool holds)
{
    const struct truth_claim *c = &t->claims.data[i];
    assert_true(c->known);
    assert_true(fabs(c->measured - measured) < 1e-6);
    assert_true(fabs(c->error - error) < 1e-6);
    assert_int_equal(truth_holds(c), holds);
}

static void test_shares_and_sums(void **state)
{
    struct truth t;
    (void)state;
    check(&t, "truth 1\n# of the sample\n\tkind k\r\nevent cpu\nbound 3%\ntotal work 88%\nself "
              "work 20%\ntotal start 40%\n"
              "bound 1%\nsum 10200000\ncount work 9\nline work.c:20 9000000\nself tiny 3000000\n");
    expect(&t, 0, 90, 2, true);
    expect(&t, 1, 20, 0, true);
    expect(&t, 2, 40, 0, true); /* "start(void*)" */
    expect(&t, 3, 10e6, 100 * 0.2 / 10.2, false);
    expect(&t, 4, 9, 0, true);
    expect(&t, 5, 9e6, 0, true);
    expect(&t, 6, 3e6, 0, true);
    truth_release(&t);
}

static void test_events(void **state)
{
    struct truth t;
    (void)state;
    check(&t, "truth 1\nevent nothing|page-faults\nsum 7\nevent wall\ntotal work 47.5%\n"
              "event nothing\nsum 7\nevent cpu\nwithin main\ntotal leaf 60%\n");
    expect(&t, 0, 7, 0, true);
    expect(&t, 1, 100 * 19.0 / 40, 0, true);
    assert_false(t.claims.data[2].known);
    assert_false(truth_holds(&t.claims.data[2]));
    expect(&t, 3, 60, 0, true);
    truth_release(&t);
}

static void test_of_nothing(void **state)
{
    struct truth t;
    (void)state;
    check(&t, "truth 1\nevent cpu\nself nobody 0\nself work 0\ntotal nobody 5%\n");
    assert_true(truth_holds(&t.claims.data[0]));
    assert_false(truth_holds(&t.claims.data[1])); /* of nothing, anything is too much */
    expect(&t, 2, 0, 5, true);
    truth_release(&t);
}

static void test_kinds(void **state)
{
    struct truth t;
    (void)state;
    check(&t, "truth 1\nkind a\nevent cpu\nbound 3%\ntotal work 88%\nself work 19%\n"
              "kind b\nself work 50%\nkind c\nevent no\nsum 3\n");
    struct truth_kind a = truth_sum_up(&t, "a"), b = truth_sum_up(&t, "b"),
                      c = truth_sum_up(&t, "c");
    assert_int_equal(a.claims, 2);
    assert_true(a.worst == 2 && !a.wrong && !truth_kind_fails(&a));
    assert_true(b.worst == 30 && b.wrong == 1 && truth_kind_fails(&b));
    assert_true(c.wrong == 1 && isnan(c.worst) && truth_kind_fails(&c));
    a.cost_known = true;
    a.cost = 9;
    a.cost_noise = 3;
    a.cost_bound = 5;
    assert_true(truth_kind_fails(&a));
    a.cost_noise = 4.5;
    assert_false(truth_kind_fails(&a));
    truth_release(&t);
}

/* Means over runs: each may be off by chance, their mean is not. */
static void test_means(void **state)
{
    static const char first[] = "truth 1\nevent cpu\nbound 3%\nself work 10%\n",
                      second[] = "truth 1\nevent cpu\nbound 3%\nself work 30%\n",
                      other[] = "truth 1\nevent cpu\nself leaf 30%\n";
    struct truth t, u, v;
    struct error err = {0};
    (void)state;
    check(&t, first);
    check(&u, second);
    check(&v, other);
    assert_false(truth_holds(&t.claims.data[0]) || truth_holds(&u.claims.data[0]));
    assert_int_equal(truth_add(&t, &u, &err), 0);
    truth_divide(&t, 2);
    expect(&t, 0, 20, 0, true);
    assert_int_equal(truth_add(&t, &v, &err), FAULT_INPUT);
    truth_release(&t);
    truth_release(&u);
    truth_release(&v);
}

static void test_what_is_no_truth(void **state)
{
    static const char *const texts[] = {"",
                                        "truth 2\nsum 1\n",
                                        "sum 1\n",
                                        "truth 1\n",
                                        "truth 1\nself f\n",
                                        "truth 1\nself f x\n",
                                        "truth 1\nself f -3\n",
                                        "truth 1\nself f nan\n",
                                        "truth 1\nself f inf\n",
                                        "truth 1\ncount f 3%\n",
                                        "truth 1\nsum 3%\n",
                                        "truth 1\nline here 3\n",
                                        "truth 1\nevent\n",
                                        "truth 1\nbound much\n",
                                        "truth 1\nshare f 3\n",
                                        "truth 1\nself f 3%%\n",
                                        "truth 1\nself f 1e999\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct truth t;
        struct error err = {0};
        assert_int_equal(truth_parse(&t, texts[i], &err), FAULT_INPUT);
        assert_true(*err.text);
        truth_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_and_sums), cmocka_unit_test(test_events),
        cmocka_unit_test(test_of_nothing),      cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_means),           cmocka_unit_test(test_what_is_no_truth)};
    sample_profile_init(&sample);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    profile_release(&sample.p);
    return failed;
}
