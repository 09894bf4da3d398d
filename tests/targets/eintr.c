/*
 * T18. eintr [COUNT]: waits in nanosleep, poll, read, sem_timedwait and a contended lock without
 * expecting interruptions, between stretches of work; counts the calls that failed.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static int ends[2];
static uint64_t count;

static void *feed(void *unused)
{
    struct timespec nap = {0, 3000000};
    (void)unused;
    for (uint64_t i = 0; i < count; i++) {
        nanosleep(&nap, NULL);
        must(write(ends[1], "x", 1) == 1, "write");
    }
    return NULL;
}

static int timed_wait(sem_t *never)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 2000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return sem_timedwait(never, &until) == -1 && errno == ETIMEDOUT;
}

int main(int argc, char **argv)
{
    pthread_t feeder;
    sem_t never;
    struct timespec nap = {0, 2000000};
    int failed[4] = {0};
    volatile uint64_t sink = 1;
    count = argument(argc, argv, 1, 50);
    must(pipe(ends) == 0 && sem_init(&never, 0, 0) == 0, "pipe");
    must(pthread_create(&feeder, NULL, feed, NULL) == 0, "pthread_create");
    for (uint64_t i = 0; i < count; i++) {
        char byte;
        struct pollfd nothing = {.fd = -1};
        failed[0] += nanosleep(&nap, NULL) != 0;
        failed[1] += poll(&nothing, 1, 2) != 0;
        failed[2] += read(ends[0], &byte, 1) != 1;
        failed[3] += !timed_wait(&never);
        sink = work(sink, 1000);
    }
    pthread_join(feeder, NULL);
    printf("nanosleep %d, poll %d, read %d, sem_timedwait %d interrupted\n", failed[0], failed[1],
           failed[2], failed[3]);
    return 0;
}
