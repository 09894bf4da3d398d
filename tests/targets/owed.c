/*
 * T18. owed: a handler that has every other signal blocked and takes a while. The wait that it
 * interrupted must fail with EINTR, whatever else came meanwhile; and its mask is what was set.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

#include "work.h"

static volatile uint64_t sink = 1;
static sigset_t others;

static void take_long(int number)
{
    (void)number;
    sink = work(sink, 15000);
}

static int by_poll(void)
{
    return poll(NULL, 0, 3000);
}

static int by_nanosleep(void)
{
    struct timespec long_enough = {.tv_sec = 3};
    return nanosleep(&long_enough, NULL);
}

static int by_ppoll(void)
{
    struct timespec long_enough = {.tv_sec = 3};
    return ppoll(NULL, 0, &long_enough, &others);
}

static int by_pselect(void)
{
    struct timespec long_enough = {.tv_sec = 3};
    return pselect(0, NULL, NULL, NULL, &long_enough, &others);
}

static int by_epoll_pwait(void)
{
    static int fd = -1;
    struct epoll_event event;
    if (fd < 0)
        fd = epoll_create1(0);
    return epoll_pwait(fd, &event, 1, 3000, &others);
}

int main(void)
{
    static const struct {
        const char *name;
        int (*wait)(void);
    } waits[] = {{"poll", by_poll},
                 {"nanosleep", by_nanosleep},
                 {"ppoll", by_ppoll},
                 {"pselect", by_pselect},
                 {"epoll_pwait", by_epoll_pwait}};
    struct sigaction act = {.sa_handler = take_long}, now;
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    sigfillset(&act.sa_mask);
    sigfillset(&others);
    sigdelset(&others, SIGALRM);
    must(sigaction(SIGALRM, &act, NULL) == 0 && sigaction(SIGALRM, NULL, &now) == 0, "sigaction");
    printf("the highest is %s\n", sigismember(&now.sa_mask, SIGRTMAX) ? "blocked" : "open");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        must(setitimer(ITIMER_REAL, &soon, NULL) == 0, "setitimer");
        int result = waits[i].wait();
        printf("%s %s\n", waits[i].name, result < 0 && errno == EINTR ? "was ended" : "went on");
    }
    return 0;
}
