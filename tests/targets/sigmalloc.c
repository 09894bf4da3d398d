/*
 * T22. sigmalloc [COUNT]: allocates and frees inside a signal handler. The program itself allocates
 * nothing meanwhile, so that this is safe when it runs alone.
 */
#include <signal.h>
#include <sys/time.h>

#include "work.h"

static volatile sig_atomic_t rounds;

static void allocate(int number)
{
    (void)number;
    void *blocks[20];
    for (size_t i = 0; i < 20; i++)
        blocks[i] = malloc(100 * i + 1);
    for (size_t i = 0; i < 20; i++)
        free(blocks[i]);
    rounds = rounds + 1;
}

int main(int argc, char **argv)
{
    struct sigaction on_alarm = {.sa_handler = allocate};
    struct itimerval often = {{0, 2000}, {0, 2000}};
    volatile uint64_t sink = 1;
    int count = (int)argument(argc, argv, 1, 100);
    must(sigaction(SIGALRM, &on_alarm, NULL) == 0, "sigaction");
    must(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
    while (rounds < count)
        sink = work(sink, 100);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    puts("allocated");
    return 0;
}
