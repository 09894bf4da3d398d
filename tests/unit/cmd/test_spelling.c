/* Nearest words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cmd/spelling.h"

static const char *nearest_of(const char *word)
{
    static const char *const known[] = {"rate", "output", "duration", "no-follow", "report"};
    struct spelling s;
    spelling_init(&s, word);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        spelling_offer(&s, known[i]);
    return spelling_nearest(&s);
}

static void slips_are_understood(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("raet"), "rate");
    assert_string_equal(nearest_of("rat"), "rate");
    assert_string_equal(nearest_of("ouput"), "output");
    assert_string_equal(nearest_of("dur"), "duration");
    assert_string_equal(nearest_of("reprot"), "report");
}

static void strangers_are_not(void **state)
{
    (void)state;
    assert_null(nearest_of("xyzzy"));
    assert_null(nearest_of(""));
    char endless[5000];
    memset(endless, 'r', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_null(nearest_of(endless));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slips_are_understood),
                                       cmocka_unit_test(strangers_are_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
