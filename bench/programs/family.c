/*
 * A tree of processes: 16 children, four at a time, two threads each, half of them through exec;
 * each thread computes and allocates. Prints the CPU time of them all.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))
#define CHILDREN 16
#define AT_ONCE 4

static volatile uint64_t sink;

KEEP static void *allocate(int depth, size_t size)
{
    if (!depth)
        return malloc(size);
    void *p = allocate(depth - 1, size);
    sink += (uint64_t)depth;
    return p;
}

KEEP static uint64_t spin(uint64_t x, int n)
{
    while (n--)
        x = x * 6364136223846793005ull + (x >> 29);
    return x;
}

static void *work(void *id)
{
    void *kept[512] = {0};
    uint64_t x = (uint64_t)(uintptr_t)id + 1;
    for (int i = 0; i < 500000; i++) {
        x = spin(x, 60);
        unsigned slot = x >> 40 & 511;
        free(kept[slot]);
        kept[slot] = allocate(10, 16 + (x >> 50 & 255));
    }
    for (int i = 0; i < 512; i++)
        free(kept[i]);
    sink += x;
    return NULL;
}

static void child(void)
{
    pthread_t t[2];
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    int running = 0, status, bad = 0;
    if (argc > 1 && !strcmp(argv[1], "child")) {
        child();
        return 0;
    }
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            if (i & 1)
                execl("/proc/self/exe", argv[0], "child", (char *)NULL);
            child();
            exit(0);
        }
        if (++running == AT_ONCE && wait(&status) > 0) {
            bad += status != 0;
            running--;
        }
    }
    while (wait(&status) > 0)
        bad += status != 0;
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    fprintf(stderr, "cpu %ld.%06ld\n", u.ru_utime.tv_sec + u.ru_stime.tv_sec,
            (u.ru_utime.tv_usec + u.ru_stime.tv_usec) % 1000000);
    return bad;
}
