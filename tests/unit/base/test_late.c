/* Libraries that are loaded when they are first called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/late.h"

static jmp_buf back;
static char told[256];

static void on_missing(const char *library, const char *why)
{
    snprintf(told, sizeof told, "%s: %s", library, why);
    longjmp(back, 1);
}

static void a_function_is_found_and_kept(void **state)
{
    (void)state;
    struct late_library library = {.name = "libm.so.6"};
    _Atomic(void *) slot = NULL;
    double (*root)(double) = (double (*)(double))late_find(&library, &slot, "sqrt");
    assert_true(root(81) == 9);
    assert_ptr_equal(slot, (void *)root);
    assert_ptr_equal(late_find(&library, &slot, "no such name: it is known by now"), (void *)root);
}

/* What the handler is told of `name` in `library`. */
static const char *missing(const char *library, const char *name)
{
    struct late_library l = {.name = library};
    _Atomic(void *) slot = NULL;
    told[0] = 0;
    if (!setjmp(back))
        late_find(&l, &slot, name);
    assert_null(slot);
    return told;
}

static void what_is_missing_is_told(void **state)
{
    (void)state;
    late_set_handler(on_missing);
    assert_ptr_equal(strstr(missing("libno-such.so.1", "sqrt"), "libno-such.so.1: "), told);
    assert_non_null(strstr(missing("libm.so.6", "no_such_function"), "no_such_function"));
    late_set_handler(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_found_and_kept),
        cmocka_unit_test(what_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
