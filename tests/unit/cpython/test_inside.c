/*
 * The walk from within, as the agent does it: each installed interpreter loads a library that walks
 * its frames, compares, and is then walked from signals while it works. A crash is a failure here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "interpreter.h"

static const char *script_folder, *library;

static unsigned long number_before(const char *line, const char *word)
{
    const char *at = strstr(line, word);
    assert_non_null(at);
    for (at--; at > line && at[-1] >= '0' && at[-1] <= '9'; at--)
        ;
    return strtoul(at, NULL, 10);
}

static void check_interpreter(const char *path, struct interpreter_run *run)
{
    char line[512] = "";
    bool told = fgets(line, sizeof(line), run->out) && !strncmp(line, "OK", 2);
    print_message("%s: %s", path, line);
    assert_true(told);
    unsigned long all = number_before(line, " walks"), complete = number_before(line, " complete");
    assert_true(all > 500);
    /* Only where a call of the loop has begun and its first word is not written yet. */
    assert_true(all - complete <= 1 + all / 500);
    assert_int_equal(number_before(line, " otherwise wrong"), 0);
    assert_true(number_before(line, " ns, of") < 1000);
}

static void test_every_interpreter(void **state)
{
    (void)state;
    if (!interpreter_each(script_folder, "inside.py", library, "1.0", check_interpreter))
        skip();
}

int main(int argc, char **argv)
{
    script_folder = argc > 1 ? argv[1] : ".";
    library = argc > 2 ? argv[2] : "libinside.so";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
