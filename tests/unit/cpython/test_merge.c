/* Native and Python frames put into one stack. 'e' is a call of the interpreter loop, any other
 * letter a native function; capital letters are Python frames, '.' after one that begins a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cpython/cpython.h"

static bool is_eval(void *ctx, uint64_t address, size_t index)
{
    (void)ctx, (void)index;
    return address == 'e';
}

static void merge(const char *native, bool native_whole, const char *python, bool python_whole,
                  const char *expected)
{
    uint64_t address[32];
    struct cpython_frame frame[32] = {0};
    struct cpython_mixed mixed[32];
    char found[33];
    size_t natives = strlen(native), frames = 0;
    for (size_t i = 0; i < natives; i++)
        address[i] = (uint64_t)native[i];
    for (; *python; python++) {
        if (*python == '.')
            frame[frames - 1].flags |= CPYTHON_FRAME_ENTRY;
        else
            frame[frames++].code = (uint64_t)*python;
    }
    const struct cpython_native stack = {address, natives, native_whole, is_eval, NULL};
    size_t count = cpython_merge(&stack, frame, frames, python_whole, mixed, 32);
    for (size_t i = 0; i < count; i++)
        found[i] = (char)(mixed[i].python ? frame[mixed[i].index].code : address[mixed[i].index]);
    found[count] = '\0';
    assert_string_equal(found, expected);
}

static void test_each_frame_a_call(void **state)
{
    (void)state;
    merge("sfege1eem", true, "A.B.C.D.", true, "sfAgB1CDm");
    merge("sxm", true, "", true, "sxm");
    merge("", true, "A.", true, "A");
}

static void test_several_in_a_call(void **state)
{
    (void)state;
    merge("sfegem", true, "ABC.DE.", true, "sfABCgDEm");
    merge("sfem", true, "ABCDE.", true, "sfABCDEm");
    merge("em", true, "A.", true, "Am");
}

/* The loop has been called but has not pushed its frame yet, or has popped it already. */
static void test_not_yet_pushed(void **state)
{
    (void)state;
    merge("efegem", true, "AB.C.", true, "efABgCm");
    merge("em", true, "", true, "em");
}

/* The outer end is missing: then the inner ends belong together. */
static void test_cut(void **state)
{
    (void)state;
    merge("sfege", false, "AB.C.D.E.", true, "sfABgCDE");
    merge("sfegehem", true, "AB.C.", false, "sfABgChem");
    merge("sfegehem", true, "AB.C", false, "sfABgChem");
    merge("s", false, "A.B.", true, "sAB");
}

static void test_fewer_calls_than_frames(void **state)
{
    (void)state;
    merge("sfem", true, "A.B.C.", true, "sfAmBC");
}

static void test_room(void **state)
{
    (void)state;
    const uint64_t address[] = {'s', 'e', 'm'};
    const struct cpython_native native = {address, 3, true, is_eval, NULL};
    const struct cpython_frame frame[] = {{.code = 1}, {.code = 2, .flags = CPYTHON_FRAME_ENTRY}};
    struct cpython_mixed mixed[2];
    assert_int_equal(cpython_merge(&native, frame, 2, true, mixed, 2), 2);
    assert_true(!mixed[0].python && mixed[1].python && mixed[1].index == 0);
    assert_int_equal(cpython_merge(&native, frame, 2, true, mixed, 0), 0);
}

static void test_names(void **state)
{
    (void)state;
    assert_true(cpython_is_eval("_PyEval_EvalFrameDefault"));
    assert_true(cpython_is_eval("_PyEval_EvalFrameDefault.cold"));
    assert_true(cpython_is_eval("_PyEval_EvalFrameDefault.cold.1234"));
    assert_false(cpython_is_eval("_PyEval_EvalFrameDefaults"));
    assert_false(cpython_is_eval("_PyEval_EvalFrame"));
    assert_false(cpython_is_eval(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_frame_a_call),
        cmocka_unit_test(test_several_in_a_call),
        cmocka_unit_test(test_not_yet_pushed),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_fewer_calls_than_frames),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
