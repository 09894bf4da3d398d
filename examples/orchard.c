/*
 * A small tree of processes with a known hot spot, for `make demo`: an orchard with three
 * pickers (child processes, one of them through exec), each with two threads. Of every unit of
 * work, 6 parts go to press(), 3 to wash() and 1 to sort_fruit(); the parent only waits.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PICKERS 3
#define THREADS 2
#define ROUNDS 60

static volatile uint64_t juice;

/* A function that does so many parts of work: the same number of steps a part everywhere. */
#define STEP(name, parts)                                                                          \
    __attribute__((noinline)) static uint64_t name(uint64_t x)                                     \
    {                                                                                              \
        for (int i = 0; i < (parts)*400000; i++)                                                   \
            x = x * 6364136223846793005ull + (x >> 29);                                            \
        return x;                                                                                  \
    }

STEP(press, 6)
STEP(wash, 3)
STEP(sort_fruit, 1)

__attribute__((noinline)) static uint64_t make_juice(uint64_t x)
{
    x = press(wash(sort_fruit(x)));
    return x ^ 1; /* not a tail call: it shall be seen in stacks */
}

static void *pick(void *name)
{
    uint64_t x = 1;
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
    for (int i = 0; i < ROUNDS; i++)
        x = make_juice(x);
    juice += x;
    return NULL;
}

static void run_picker(void)
{
    static char *const names[THREADS] = {"left hand", "right hand"};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, pick, names[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "picker")) {
        run_picker();
        return 0;
    }
    for (int i = 0; i < PICKERS; i++) {
        if (fork() == 0) {
            if (i == PICKERS - 1)
                execl(argv[0], argv[0], "picker", (char *)NULL);
            run_picker();
            return 0;
        }
    }
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status;
    puts(failed ? "a picker fell off the ladder" : "the juice is ready");
    return failed ? 1 : 0;
}
