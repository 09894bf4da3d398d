/*
 * Real stacks of both kinds: the threads of truth.py are unwound natively and in Python. As many
 * calls of the interpreter loop must be found as Python says began, and each must be replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unwind/process.h"
#include "interpreter.h"

#define DEPTH 4096
#define WINDOW (4u << 20)

static const char *script_folder;

/* The interpreter loop: the function, and the part that was split off it where that has a name. */
struct loop {
    uint64_t start[2], size[2];
};

static bool is_eval(void *ctx, uint64_t address, size_t index)
{
    const struct loop *loop = ctx;
    for (int i = 0; i < 2; i++) {
        if (address - (index > 0) - loop->start[i] < loop->size[i])
            return true;
    }
    return false;
}

/* Whether the thread could be compared: its native stack was unwound to the end. */
static bool check_thread(const struct cpython *py, const struct cpython_memory *memory,
                         const struct cpython_thread *thread, struct loop *loop,
                         const struct process_stack *stack)
{
    static struct cpython_frame frame[DEPTH];
    static struct cpython_mixed mixed[DEPTH];
    struct cpython_end end;
    if (stack->end.reason != UNWIND_COMPLETE)
        return false;
    size_t count = cpython_walk(py, memory, thread->state, frame, DEPTH, &end);
    assert_int_equal(end.reason, CPYTHON_COMPLETE);
    size_t evals = 0, entries = 0, python = 0;
    for (size_t i = 0; i < stack->count; i++)
        evals += is_eval(loop, stack->address[i], i);
    for (size_t i = 0; i < count; i++)
        entries += frame[i].flags & CPYTHON_FRAME_ENTRY;
    assert_int_equal(evals, entries);
    const struct cpython_native native = {stack->address, stack->count, true, is_eval, loop};
    size_t all = cpython_merge(&native, frame, count, true, mixed, DEPTH);
    assert_int_equal(all, stack->count - evals + count);
    for (size_t i = 0; i < all; i++) {
        if (mixed[i].python)
            assert_int_equal(mixed[i].index, python++);
        else
            assert_false(is_eval(loop, stack->address[mixed[i].index], mixed[i].index));
    }
    assert_int_equal(python, count);
    assert_false(mixed[0].python);       /* all of them sleep, in C */
    assert_false(mixed[all - 1].python); /* and began in C */
    return true;
}

static void wait_ready(struct interpreter_run *run)
{
    char line[8192];
    while (fgets(line, sizeof(line), run->out) && strncmp(line, "READY", 5))
        ;
    usleep(50000);
}

static void check_interpreter(const char *path, struct interpreter_run *run)
{
    static struct process_stack stack;
    struct cpython py;
    struct cpython_memory memory;
    struct interpreter_module module;
    struct cpython_thread thread[16];
    struct unwind_map map = {0};
    struct loop loop = {0};
    pid_t tid[PROCESS_THREADS];
    size_t compared = 0;
    wait_ready(run);
    cpython_memory_remote(&memory, run->pid, NULL);
    assert_int_equal(interpreter_open(run->pid, &py, &memory, &module), 0);
    assert_true(interpreter_symbol_size(&module, "_PyEval_EvalFrameDefault", &loop.start[0],
                                        &loop.size[0]));
    interpreter_symbol_size(&module, "_PyEval_EvalFrameDefault.cold", &loop.start[1],
                            &loop.size[1]);
    ssize_t count = cpython_threads(&py, &memory, run->pid, thread, 16);
    assert_int_equal(count, 9);
    size_t stopped = process_stop(run->pid, tid);
    process_map(run->pid, &map);
    for (ssize_t i = 0; i < count; i++) {
        process_walk(&map, run->pid, (pid_t)thread[i].native_id, WINDOW, &stack);
        compared += check_thread(&py, &memory, &thread[i], &loop, &stack);
    }
    print_message("%s: %zu of %zd threads compared\n", path, compared, count);
    /* Before 3.11 every Python call is several native ones: three are deeper than we unwind. */
    assert_true(compared >= (py.minor > 10 ? 9 : 6));
    process_resume(tid, stopped);
    unwind_map_release(&map);
    interpreter_module_close(&module);
}

static void test_every_interpreter(void **state)
{
    (void)state;
    if (!interpreter_each(script_folder, "truth.py", NULL, NULL, check_interpreter))
        skip();
}

int main(int argc, char **argv)
{
    script_folder = argc > 1 ? argv[1] : ".";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
