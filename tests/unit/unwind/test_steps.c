/*
 * Runs target_odd instruction by instruction and walks its stack at each: against libdw, and
 * against the truth that every stack leads back to the outermost frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "process.h"

#define STEPS_MAX 200000

static const char *target;
static struct process_stack ours, theirs;

struct tally {
    size_t steps, equal, complete, interrupted;
};

static void show(const struct process_stack *s, const char *title)
{
    print_message("  %s (%d at %lx):", title, (int)s->end.reason, s->end.address);
    for (size_t i = 0; i < s->count && i < 12; i++)
        print_message(" %lx", s->address[i]);
    print_message("\n");
}

static void compare(const struct unwind_map *map, struct process_libdw *libdw, pid_t pid,
                    struct tally *tally)
{
    process_walk(map, pid, pid, 1 << 16, &ours);
    process_libdw_walk(libdw, pid, &theirs);
    bool complete = ours.end.reason == UNWIND_COMPLETE;
    bool equal = process_stack_agrees(&ours, &theirs);
    tally->steps++;
    tally->equal += equal;
    tally->complete += complete;
    tally->interrupted += ours.end.interrupted > 0;
    static size_t shown;
    if ((!equal || !complete) && shown++ < 25) {
        show(&ours, "ours ");
        show(&theirs, "libdw");
    }
}

/* Steps on; the signal the stop was for is passed on. False when the target stops itself or ends.
 */
static bool step(pid_t pid, int *pass)
{
    int status;
    if (ptrace(PTRACE_SINGLESTEP, pid, 0, *pass) || waitpid(pid, &status, __WALL) != pid ||
        !WIFSTOPPED(status))
        return false;
    *pass = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    return *pass != SIGSTOP;
}

static pid_t start(void)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execl(target, target, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0); /* the exec's trap */
    /* It stops itself when it is ready; other signals on the way are its own business. */
    for (int pass = 0; pass != SIGSTOP; pass = WSTOPSIG(status)) {
        ptrace(PTRACE_CONT, pid, 0, pass);
        waitpid(pid, &status, 0);
        assert_true(WIFSTOPPED(status));
    }
    return pid;
}

static void test_every_instruction(void **state)
{
    (void)state;
    struct tally tally = {0};
    struct unwind_map map = {0};
    pid_t pid = start();
    process_map(pid, &map);
    struct process_libdw *libdw = process_libdw_attach(pid);
    for (int pass = 0; tally.steps < STEPS_MAX && step(pid, &pass);)
        compare(&map, libdw, pid, &tally);
    process_libdw_detach(libdw);
    process_end(pid);
    unwind_map_release(&map);
    print_message("%zu instructions, %zu equal, %zu complete, %zu in signal handlers\n",
                  tally.steps, tally.equal, tally.complete, tally.interrupted);
    assert_true(tally.steps > 5000 && tally.steps < STEPS_MAX);
    assert_true(tally.interrupted > 50);
    assert_true(tally.equal * 1000 >= tally.steps * 995);
    assert_true(tally.complete * 1000 >= tally.steps * 995);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 77;
    target = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_instruction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
