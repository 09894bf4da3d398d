/* The interpreter's ways of calling are hidden between Python frames, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/interpreter.h"

struct made {
    struct profile p;
    uint32_t source, library;
    uint64_t address;
};

static void make(struct made *m)
{
    *m = (struct made){0};
    profile_init(&m->p);
    m->source = profile_module_add(&m->p, CODE_PYTHON, "/app.py", NULL, 0);
    m->library = profile_module_add(&m->p, CODE_ELF, "/libpython3.13.so.1.0", NULL, 0);
}

static uint32_t python(struct made *m, uint32_t parent, const char *name)
{
    uint32_t f = profile_function_add(&m->p, name, "", "/app.py", 1, m->source);
    return profile_stack_add(&m->p, parent, profile_frame_named(&m->p, m->source, f, 1));
}

static uint32_t native(struct made *m, uint32_t parent, const char *name)
{
    struct profile_location at = {.function =
                                      profile_function_add(&m->p, name, "", "", 0, m->library)};
    uint32_t frame = profile_frame_add(&m->p, m->library, m->address++);
    profile_frame_locate(&m->p, frame, &at, 1);
    return profile_stack_add(&m->p, parent, frame);
}

static void test_between_python_frames(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    uint32_t start = native(&m, 0, "_PyObject_Vectorcall"), outer = python(&m, start, "main");
    uint32_t way = native(&m, outer, "_PyObject_Vectorcall");
    uint32_t sort = native(&m, way, "list_sort_impl");
    uint32_t back = native(&m, sort, "PyObject_CallOneArg");
    uint32_t eval = native(&m, back, "_PyEval_Vector"), inner = python(&m, eval, "key");
    profile_hide_interpreter(&m.p);
    const struct profile_stack *s = m.p.stacks.data;
    assert_int_equal(s[outer].parent, start); /* nothing of Python's is outside */
    assert_int_equal(s[sort].parent, outer);
    assert_int_equal(s[inner].parent, sort);
    assert_int_equal(s[way].parent, outer); /* what it did itself stays */
    assert_int_equal(s[eval].parent, sort);
    profile_release(&m.p);
}

static void test_frames_of_the_tracer(void **state)
{
    (void)state;
    struct made m;
    make(&m);
    uint32_t outer = python(&m, 0, "main"), program = native(&m, outer, "run_frame");
    uint32_t inner = python(&m, program, "inner");
    m.library = profile_module_add(&m.p, CODE_ELF, "/usr/lib/sonde/libsonde.so", NULL, 0);
    uint32_t run = native(&m, inner, "run_frame"), eval = native(&m, run, "eval_frame");
    uint32_t last = python(&m, eval, "last"), own = native(&m, last, "trace_put");
    uint32_t first = python(&m, native(&m, 0, "run_frame"), "first");
    profile_hide_interpreter(&m.p);
    const struct profile_stack *s = m.p.stacks.data;
    assert_int_equal(s[inner].parent, program); /* the program's own, of the same name */
    assert_int_equal(s[last].parent, inner);
    assert_int_equal(s[own].parent, last);
    assert_int_equal(s[first].parent, 0);
    profile_release(&m.p);
}

static void test_without_python(void **state)
{
    (void)state;
    struct profile p;
    profile_init(&p);
    uint32_t module = profile_module_add(&p, CODE_ELF, "/bin/x", NULL, 0);
    struct profile_location at = {.function =
                                      profile_function_add(&p, "call_function", "", "", 0, module)};
    uint32_t frame = profile_frame_add(&p, module, 1);
    profile_frame_locate(&p, frame, &at, 1);
    uint32_t a = profile_stack_add(&p, 0, frame), b = profile_stack_add(&p, a, frame);
    profile_hide_interpreter(&p);
    assert_int_equal(p.stacks.data[b].parent, a);
    profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_between_python_frames),
                                       cmocka_unit_test(test_frames_of_the_tracer),
                                       cmocka_unit_test(test_without_python)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
