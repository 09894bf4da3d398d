/*
 * sleeper [MS]: waits a known time in three ways, one after another: 3 MS asleep (`in_sleep`), 2 MS
 * for a lock that another thread holds (`in_lock`), 1 MS for a pipe (`in_read`).
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static uint64_t unit_ms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static int ends[2];

static void pause_for(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void *hold(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    pause_for(2 * unit_ms);
    pthread_mutex_unlock(&lock);
    pause_for(unit_ms);
    must(write(ends[1], "x", 1) == 1, "write");
    return NULL;
}

KEPT void in_sleep(void)
{
    pause_for(3 * unit_ms);
    __asm__ volatile("");
}

KEPT void in_lock(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    __asm__ volatile("");
}

KEPT void in_read(void)
{
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    pthread_t holder;
    unit_ms = argument(argc, argv, 1, 100);
    must(pipe(ends) == 0, "pipe");
    pthread_barrier_init(&held, NULL, 2);
    in_sleep();
    must(pthread_create(&holder, NULL, hold, NULL) == 0, "pthread_create");
    pthread_barrier_wait(&held);
    in_lock();
    in_read();
    pthread_join(holder, NULL);
    puts("awake");
    return 0;
}
