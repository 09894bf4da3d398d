/*
 * grows SECONDS [CHILDREN [FILE]]: works for that long, or until FILE is gone, in itself and in so
 * many children, and all the while keeps blocks of 64 KiB from site_grow. Prints how many blocks
 * were kept in all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define BLOCK 65536

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

KEPT void *site_grow(void **before)
{
    void **block = malloc(BLOCK);
    if (!block)
        abort();
    *block = before;
    return block;
}

KEPT uint64_t site_work(uint64_t seed)
{
    return work(seed, 300);
}

static const char *file; /* or NULL */

static void grow(double until, uint64_t *kept)
{
    void *last = NULL;
    uint64_t seed = 1;
    while (now() < until && (!file || access(file, F_OK) == 0)) {
        last = site_grow(last);
        __atomic_fetch_add(kept, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < 20; i++)
            seed = site_work(seed);
        usleep(1000);
    }
    *(volatile uint64_t *)last = seed; /* they are kept until here */
}

int main(int argc, char **argv)
{
    double until = now() + (double)argument(argc, argv, 1, 1);
    uint64_t children = argument(argc, argv, 2, 0);
    file = argc > 3 ? argv[3] : NULL;
    uint64_t *kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kept == MAP_FAILED)
        return 1;
    for (uint64_t i = 0; i < children; i++) {
        if (fork() == 0) {
            grow(until, kept);
            return 0;
        }
    }
    grow(until, kept);
    while (wait(NULL) > 0)
        ;
    printf("%llu\n", (unsigned long long)*kept);
    return 0;
}
