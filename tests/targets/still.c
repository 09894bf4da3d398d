/*
 * still WAIT SECONDS: a server that has nothing to do: it waits in nanosleep, poll, epoll_wait or
 * sigtimedwait, and allocates in between. Prints how many waits were interrupted. Status 7.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

#include "work.h"

#define NAP 150 /* ms */

static const struct timespec nap = {.tv_nsec = NAP * 1000000l};

static int by_nanosleep(void)
{
    return nanosleep(&nap, NULL);
}

static int by_poll(void)
{
    return poll(NULL, 0, NAP);
}

static int by_epoll_wait(void)
{
    static int fd = -1;
    struct epoll_event event;
    if (fd < 0)
        fd = epoll_create1(0);
    return epoll_wait(fd, &event, 1, NAP);
}

static int by_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return sigtimedwait(&set, NULL, &nap);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*wait)(void);
    } waits[] = {{"nanosleep", by_nanosleep},
                 {"poll", by_poll},
                 {"epoll_wait", by_epoll_wait},
                 {"sigtimedwait", by_sigtimedwait}};
    size_t which = 0;
    int interrupted = 0;
    must(argc == 3, "still WAIT SECONDS");
    while (which < 3 && strcmp(argv[1], waits[which].name) != 0)
        which++;
    for (uint64_t left = argument(argc, argv, 2, 1) * 1000 / NAP; left; left--) {
        void *volatile block = malloc(1000);
        interrupted += waits[which].wait() < 0 && errno == EINTR;
        free(block);
    }
    printf("%d interrupted\n", interrupted);
    return 7;
}
