/* A process that rests, works, is changed by others and ends is seen to do so. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/watch.h"

#define WORK_NS 50000000
#define LOOKS 18 /* more than a change by others takes to be seen */

/* Works for WORK_NS of CPU time whenever a byte comes, and answers it. */
static void child(int in, int out)
{
    char byte;
    while (read(in, &byte, 1) == 1) {
        struct timespec now, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        end.tv_nsec += WORK_NS;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        do
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
        if (write(out, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static void work(int to, int from)
{
    char byte = 'w';
    assert_int_equal(write(to, &byte, 1), 1);
    assert_int_equal(read(from, &byte, 1), 1);
}

/* In a state other than running, which it was in when it answered. */
static void wait_for_rest(struct watch *w, pid_t pid)
{
    for (int i = 0; i < 1000; i++) {
        watch_look(w);
        if (watch_find(w, pid, pid)->state == 'S')
            return;
        usleep(1000);
    }
    fail_msg("it never rests");
}

static void look_often(struct watch *w)
{
    for (int i = 0; i < LOOKS; i++) {
        usleep(2000);
        watch_look(w);
    }
}

static void a_process_is_followed(void **state)
{
    (void)state;
    struct watch w;
    int to[2], from[2];
    assert_int_equal(pipe(to) | pipe(from), 0);
    pid_t pid = fork();
    if (!pid)
        child(to[0], from[1]);
    watch_init(&w, false);
    wait_for_rest(&w, pid);
    for (int round = 0; round < 3; round++) {
        look_often(&w);
        struct watch_task *t = watch_find(&w, pid, pid);
        uint64_t before = t->cpu;
        assert_true(t->cpu_rate == 0 && t->state == 'S');
        work(to[1], from[0]);
        watch_look(&w);
        assert_ptr_equal(watch_find(&w, pid, pid), t);
        assert_in_range(t->cpu - before, WORK_NS / 2, WORK_NS * 4);
        assert_true(t->cpu_rate > 0);
        wait_for_rest(&w, pid);
    }
    int nice = watch_find(&w, pid, pid)->nice + 3;
    assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, nice), 0);
    look_often(&w);
    assert_int_equal(watch_find(&w, pid, pid)->nice, nice);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    watch_look(&w);
    assert_null(watch_find(&w, pid, pid));
    watch_release(&w);
    assert_int_equal(w.open, 0);
}

/* With next to none that may stay open, all are seen all the same. */
static void few_descriptors_are_enough(void **state)
{
    (void)state;
    struct watch many, few;
    struct rlimit before, r;
    getrlimit(RLIMIT_NOFILE, &before);
    r = before;
    r.rlim_cur = 130;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
    watch_init(&few, false);
    setrlimit(RLIMIT_NOFILE, &before);
    watch_init(&many, false);
    for (int i = 0; i < 3; i++) {
        watch_look(&few);
        watch_look(&many);
    }
    assert_true(few.open <= 2 && many.open > 2);
    assert_non_null(watch_find(&few, getpid(), getpid()));
    assert_in_range(few.tasks.len, many.tasks.len * 3 / 4, many.tasks.len * 4 / 3);
    watch_release(&few);
    watch_release(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_followed),
        cmocka_unit_test(few_descriptors_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
