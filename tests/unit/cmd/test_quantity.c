/* Numbers as people type them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/quantity.h"

static void whole_numbers(void **state)
{
    (void)state;
    uint64_t v;
    assert_true(quantity_unsigned("0", false, &v) && v == 0);
    assert_true(quantity_unsigned("18446744073709551615", false, &v) && v == UINT64_MAX);
    assert_true(quantity_unsigned("10k", true, &v) && v == 10000);
    assert_true(quantity_unsigned("1.5M", true, &v) && v == 1500000);
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "1k", "0x10", "1e3", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(quantity_unsigned(bad[i], false, &v));
    assert_false(quantity_unsigned("20000000000G", true, &v));
    assert_false(quantity_unsigned("k", true, &v));
}

static void durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"10", 10000000000},  {"10s", 10000000000},
                {"500ms", 500000000}, {"2m", 120000000000},
                {"1.1s", 1100000000}, {"1.5h", 5400000000000},
                {"7us", 7000},        {"7µs", 7000},
                {"3ns", 3},           {"0", 0},
                {"0.000000001", 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t ns;
        assert_true(quantity_duration(good[i].text, &ns));
        assert_int_equal(ns, good[i].ns);
    }
    uint64_t ns;
    static const char *const bad[] = {"",    "s",    "1.s", ".5s",           "10 s",
                                      "10x", "1e3s", "-1s", "1.0000000001s", "300000000000000d"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(quantity_duration(bad[i], &ns));
}

static void sizes(void **state)
{
    (void)state;
    uint64_t v;
    assert_true(quantity_size("512K", &v) && v == 512 * 1024);
    assert_true(quantity_size("1.5MiB", &v) && v == 1536 * 1024);
    assert_true(quantity_size("100", &v) && v == 100);
    assert_false(quantity_size("20000000T", &v));
    assert_false(quantity_size("1Q", &v));
}

static void reals(void **state)
{
    (void)state;
    double v;
    assert_true(quantity_double("-1.5e3", &v) && v == -1500);
    assert_true(quantity_percent("2.5%", &v) && v == 2.5);
    assert_true(quantity_percent("3", &v) && v == 3);
    static const char *const bad[] = {"", "nan", "inf", "0x1", "1e999", " 1", "1-"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(quantity_double(bad[i], &v));
    assert_false(quantity_percent("%", &v));
    assert_false(quantity_percent("1%%", &v));
}

/* What is shown as a default can be typed back. */
static void shown_values_parse(void **state)
{
    (void)state;
    static const uint64_t values[] = {0, 1, 999, 1000, 1024, 90000000000, 1500000, 1ull << 40};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct text t = TEXT_INIT;
        uint64_t back;
        quantity_add_duration(&t, values[i]);
        assert_true(quantity_duration(t.data, &back) && back == values[i]);
        text_clear(&t);
        quantity_add_size(&t, values[i]);
        assert_true(quantity_size(t.data, &back) && back == values[i]);
        text_release(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(durations),
        cmocka_unit_test(sizes),
        cmocka_unit_test(reals),
        cmocka_unit_test(shown_values_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
