/* T17. blocked [UNITS]: one thread has SIGPROF taken for itself, another has every signal blocked.
 */
#include <pthread.h>
#include <signal.h>

#include "work.h"

static volatile sig_atomic_t taken;
static uint64_t units;

static void take(int number)
{
    (void)number;
    taken = taken + 1;
}

static void *deaf(void *result)
{
    sigset_t all, after;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    *(uint64_t *)result = work(1, units);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    printf("SIGPROF %s in the deaf thread\n", sigismember(&after, SIGPROF) ? "blocked" : "open");
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    uint64_t result;
    struct sigaction own = {.sa_handler = take}, now;
    units = argument(argc, argv, 1, 300000) / 2;
    must(sigaction(SIGPROF, &own, NULL) == 0, "sigaction");
    must(pthread_create(&thread, NULL, deaf, &result) == 0, "pthread_create");
    uint64_t mine = work(2, units);
    pthread_join(thread, NULL);
    int foreign = taken; /* nobody but us sends it */
    raise(SIGPROF);
    sigaction(SIGPROF, NULL, &now);
    printf("%d foreign, %d own, handler %s\n", foreign, taken - foreign,
           now.sa_handler == take ? "kept" : "lost");
    printf("%016llx\n", (unsigned long long)(mine ^ result));
    return 0;
}
