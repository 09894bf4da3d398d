/*
 * late waits|runs|threads SECONDS: allocates a thousand bytes every ten milliseconds and frees
 * every third block, between sleeps or between work, in one thread or in three. Status 7.
 */
#include "work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int runs;
static double seconds;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

KEPT void *late_site(size_t size)
{
    char *block = malloc(size);
    block[0] = 1;
    return block;
}

static void *volatile keep;

static void *allocate(void *argument)
{
    double end = now() + seconds;
    uint64_t seed = 1;
    for (unsigned i = 0; now() < end; i++) {
        keep = late_site(1000);
        if (i % 3 == 0)
            free(keep);
        if (runs)
            seed = work(seed, 5000);
        else
            usleep(10000);
    }
    return seed ? argument : NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[2];
    if (argc != 3)
        return 2;
    runs = strcmp(argv[1], "runs") == 0;
    seconds = strtod(argv[2], NULL);
    int more = strcmp(argv[1], "threads") == 0 ? 2 : 0;
    for (int i = 0; i < more; i++)
        pthread_create(&thread[i], NULL, allocate, NULL);
    allocate(NULL);
    for (int i = 0; i < more; i++)
        pthread_join(thread[i], NULL);
    puts("done");
    return 7;
}
