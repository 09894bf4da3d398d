/*
 * jumps MILLISECONDS: works for so long of CPU time, while a timer's handler ends each stretch of
 * it by a jump, which also leaves whatever handler it came upon. Tells its CPU time in ms.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "work.h"

static sigjmp_buf out;

static void leave(int number)
{
    siglongjmp(out, number);
}

static uint64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    const volatile uint64_t end = argument(argc, argv, 1, 1000);
    struct itimerval often = {{0, 4000}, {0, 4000}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = leave};
    must(sigaction(SIGVTALRM, &act, NULL) == 0, "sigaction");
    static volatile uint64_t seed = 1;
    sigsetjmp(out, 1);
    must(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0, "setitimer");
    while (cpu_ms() < end)
        seed = work(seed, 100);
    must(setitimer(ITIMER_VIRTUAL, &never, NULL) == 0, "setitimer");
    printf("%llu\n", (unsigned long long)cpu_ms());
    return seed == 0;
}
