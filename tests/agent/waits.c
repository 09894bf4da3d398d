/*
 * waits [COUNT]: hits its main thread with signals that look like the agent's timer while it waits
 * in calls that SA_RESTART does not cover. Only for a run with the agent, where nobody may notice;
 * without it the first of them is deadly. Prints what failed.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../targets/work.h"

static pid_t tid;
static atomic_bool stop;
static uint64_t sent;

/* The agent's cookie for the first thread; see agent/threads.c. */
#define COOKIE 0x50de000100000000u

static void *hit(void *unused)
{
    (void)unused;
    while (!stop) {
        siginfo_t info = {.si_code = SI_TIMER};
        info.si_value.sival_ptr = (void *)COOKIE;
        must(syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGRTMAX, &info) == 0, "sigqueue");
        struct timespec nap = {0, 1500000};
        nanosleep(&nap, NULL);
        sent++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t count = argument(argc, argv, 1, 20), failed[4] = {0};
    pthread_t thread;
    tid = (pid_t)syscall(SYS_gettid);
    int epoll = epoll_create1(0);
    pthread_create(&thread, NULL, hit, NULL);
    for (uint64_t i = 0; i < count; i++) {
        /* Shorter than the time between two signals, or a wait begun anew would never end. */
        struct timespec nap = {0, 1000000}, until;
        failed[0] += nanosleep(&nap, NULL) != 0;
        failed[1] += poll(NULL, 0, 1) != 0;
        struct timeval tick = {0, 1000};
        failed[2] += select(0, NULL, NULL, NULL, &tick) != 0;
        struct epoll_event event;
        failed[3] += epoll_wait(epoll, &event, 1, 1) != 0;
        clock_gettime(CLOCK_MONOTONIC, &until);
    }
    stop = 1;
    pthread_join(thread, NULL);
    must(sent > count, "too few signals");
    printf("nanosleep %llu poll %llu select %llu epoll_wait %llu\n", (unsigned long long)failed[0],
           (unsigned long long)failed[1], (unsigned long long)failed[2],
           (unsigned long long)failed[3]);
    return 0;
}
