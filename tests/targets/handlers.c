/* T3. handlers: installs its own SIGSEGV and SIGPROF handlers late, and relies on both. */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "work.h"

static sigjmp_buf safe;
static volatile sig_atomic_t ticks;

static void recover(int number)
{
    siglongjmp(safe, number);
}

static void tick(int number)
{
    (void)number;
    ticks = ticks + 1;
}

KEPT int touch(volatile int *nowhere)
{
    return *nowhere;
}

KEPT void fault_and_recover(void)
{
    int caught = sigsetjmp(safe, 1);
    if (!caught)
        touch(NULL);
    printf("recovered from signal %d\n", caught);
}

int main(void)
{
    uint64_t seed = work(1, 100000);
    struct sigaction on_fault = {.sa_handler = recover}, on_tick = {.sa_handler = tick};
    must(sigaction(SIGSEGV, &on_fault, NULL) == 0, "sigaction");
    for (int i = 0; i < 3; i++)
        fault_and_recover();
    struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    must(sigaction(SIGPROF, &on_tick, NULL) == 0 && setitimer(ITIMER_PROF, &often, NULL) == 0,
         "setitimer");
    while (ticks < 10)
        seed = work(seed, 1000);
    must(setitimer(ITIMER_PROF, &never, NULL) == 0, "setitimer");
    struct sigaction now;
    sigaction(SIGPROF, NULL, &now);
    puts(now.sa_handler == tick ? "ticked, own handler in place" : "own handler lost");
    return seed == 0;
}
