/*
 * Pairs of malloc and free from 200 call stacks of 20 frames and more, in one or several threads,
 * each with its own set of live blocks; sizes are mostly small. A thousand blocks of a thousand
 * bytes leak from one stack. Prints the time that a pair took: pairs [THREADS] [PAIRS] [LIVE]; and
 * the least that one took in a slice of the first thread's work, which other load does not touch.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEEP __attribute__((noinline, noclone, noipa))
#define STACKS 200
#define DEPTH 18
#define LEAKS 1000
#define LEAK_BYTES 1000
#define LEAK_PATH 77
#define SLICES 50

typedef void *step(int depth, uint32_t path, size_t size);

static uint32_t paths[STACKS];
static void *leaked[LEAKS];
static long pairs = 20000000;
static int threads = 1, live = 10000;
static double least = 1e9; /* ns a pair */

KEEP static void *allocate(size_t size)
{
    char *block = malloc(size);
    block[0] = (char)size;
    return block;
}

KEEP static void *leak(size_t size)
{
    char *block = malloc(size);
    block[0] = 1;
    return block;
}

static step a, b, c, d;
static step *const turns[4] = {a, b, c, d};

#define TURN(name, number)                                                                         \
    KEEP static void *name(int depth, uint32_t path, size_t size)                                  \
    {                                                                                              \
        void *block = depth ? turns[path & 3](depth - 1, path >> 2 | path << 30, size)             \
                      : size == LEAK_BYTES ? leak(size)                                            \
                                           : allocate(size);                                       \
        __asm__ volatile("" ::"r"(block), "i"(number));                                            \
        return block;                                                                              \
    }

TURN(a, 1)
TURN(b, 2)
TURN(c, 3)
TURN(d, 4)

static size_t size_of(unsigned draw)
{
    size_t size = draw < 700    ? 16 + (draw & 127)
                  : draw < 980  ? 144 + (draw & 511) * 2
                  : draw < 1020 ? 1200 + (draw & 63) * 16
                                : 4096 + (draw & 3) * 1024;
    return size == LEAK_BYTES ? size + 1 : size;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* After each pair: the first thread looks at the clock now and then. */
static void slice(long i, long length, double *begin)
{
    if (i % length != length - 1)
        return;
    double now = seconds(CLOCK_THREAD_CPUTIME_ID), ns = (now - *begin) * 1e9 / (double)length;
    least = ns < least ? ns : least;
    *begin = now;
}

static void *work(void *argument)
{
    long me = (long)argument, count = pairs / threads, leaks = LEAKS / threads, done = 0;
    uint64_t random = 88172645463325252ull + (uint64_t)me * 7919;
    void **blocks = calloc((size_t)live, sizeof *blocks);
    double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    long length = count / SLICES > 0 ? count / SLICES : 1;
    for (long i = 0; i < count; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned stack = (unsigned)(random >> 8) % STACKS;
        void **slot = &blocks[(random >> 20) % (unsigned)live];
        free(*slot);
        *slot = turns[stack & 3](DEPTH, paths[stack], size_of(random >> 44 & 1023));
        if (done < leaks && i % (count / leaks) == 0)
            leaked[me * leaks + done++] = turns[1](DEPTH, paths[LEAK_PATH], LEAK_BYTES);
        if (me == 0)
            slice(i, length, &begin);
    }
    for (int i = 0; i < live; i++)
        free(blocks[i]);
    free(blocks);
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : threads;
    pairs = argc > 2 ? strtol(argv[2], NULL, 10) : pairs;
    live = argc > 3 ? (int)strtol(argv[3], NULL, 10) : live;
    if (threads < 1 || threads > 64 || pairs < LEAKS || live < 1)
        return 2;
    uint64_t random = 12345;
    for (int i = 0; i < STACKS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        paths[i] = (uint32_t)(random >> 32);
    }
    pthread_t thread[64];
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 1; i < threads; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    work(NULL);
    for (int i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    fprintf(stderr, "cpu %.3f wall %.3f: %.1f ns of CPU a pair, least %.2f\n", cpu, wall,
            cpu * 1e9 / (double)pairs, least);
    return 0;
}
