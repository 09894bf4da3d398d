/*
 * A process that runs while it is read: what comes out was so, or is called moved. Also who holds
 * the GIL, and the ids of threads after a fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "interpreter.h"

#define WALKS 2000
#define DEPTH 64

static const char *script_folder;

/* The outermost frames of the busy thread, outermost first; inside them branch, inside that leaf.
 */
static const char *const parent_names[] = {"<module>", "start", "spin", "branch", "leaf"};

static void check_names(const struct cpython *py, const struct cpython_memory *memory,
                        const struct cpython_frame *frame, size_t count)
{
    struct cpython_code code;
    assert_true(count >= 3 && count <= 5);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(cpython_code_read(py, memory, frame[i].code, &code), 0);
        assert_string_equal(code.name, parent_names[count - 1 - i]);
    }
}

struct tally {
    size_t complete, moved, other;
    double least; /* nanoseconds */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct tally walk_often(const struct cpython *py, pid_t pid, uint64_t state)
{
    static struct cpython_ahead ahead;
    struct cpython_memory memory;
    struct cpython_frame frame[DEPTH];
    struct cpython_end end;
    struct tally tally = {.least = 1e9};
    memset(&ahead, 0, sizeof(ahead));
    cpython_memory_remote(&memory, pid, &ahead);
    for (int i = 0; i < WALKS; i++) {
        double from = now();
        size_t count = cpython_walk(py, &memory, state, frame, DEPTH, &end);
        double took = now() - from;
        tally.least = took < tally.least ? took : tally.least;
        tally.complete += end.reason == CPYTHON_COMPLETE;
        tally.moved += end.reason == CPYTHON_MOVED;
        tally.other += end.reason != CPYTHON_COMPLETE && end.reason != CPYTHON_MOVED;
        if (end.reason == CPYTHON_COMPLETE)
            check_names(py, &memory, frame, count);
    }
    return tally;
}

/* One process: its busy thread `tid`, and an idle one. */
static void check_process(const char *label, pid_t pid, unsigned long tid)
{
    struct cpython py;
    struct cpython_memory memory;
    struct interpreter_module module;
    struct cpython_thread thread[4];
    size_t held = 0, busy = 2;
    cpython_memory_remote(&memory, pid, NULL);
    assert_int_equal(interpreter_open(pid, &py, &memory, &module), 0);
    for (int i = 0; i < 200; i++, usleep(500)) {
        assert_int_equal(cpython_threads(&py, &memory, pid, thread, 4), 2);
        busy = thread[0].native_id == tid ? 0 : 1;
        assert_int_equal(thread[busy].native_id, tid);
        assert_true(thread[!busy].native_id != tid && thread[!busy].native_id);
        assert_false(thread[!busy].has_gil);
        held += thread[busy].has_gil;
    }
    assert_true(held > 190);
    struct tally tally = walk_often(&py, pid, thread[busy].state);
    print_message("  %s: GIL held %zu of 200 times; of %d walks %zu complete, %zu moved, %zu "
                  "otherwise; fastest %.1f us\n",
                  label, held, WALKS, tally.complete, tally.moved, tally.other, tally.least / 1000);
    assert_true(tally.complete > WALKS / 4);
    assert_true(tally.other < WALKS / 10);
    interpreter_module_close(&module);
}

static void check_interpreter(const char *path, struct interpreter_run *run)
{
    char line[256], label[2][16];
    pid_t pid[2];
    unsigned long tid[2];
    size_t count = 0;
    print_message("%s\n", path);
    while (fgets(line, sizeof(line), run->out) && strncmp(line, "READY", 5)) {
        char *at = strchr(line, ' ');
        assert_true(at && count < 2);
        snprintf(label[count], sizeof(label[0]), "%.*s", (int)(at - line), line);
        pid[count] = (pid_t)strtol(at, &at, 10);
        tid[count++] = strtoul(at, NULL, 10);
    }
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        check_process(label[i], pid[i], tid[i]);
}

static void test_every_interpreter(void **state)
{
    (void)state;
    if (!interpreter_each(script_folder, "busy.py", NULL, NULL, check_interpreter))
        skip();
}

int main(int argc, char **argv)
{
    script_folder = argc > 1 ? argv[1] : ".";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
