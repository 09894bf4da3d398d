/*
 * Allocates in ways whose sums are known and prints them: heap MODE, then one line
 * "allocations bytes live peak temporary" of what the functions named site_* did, where it can be
 * known. Printing allocates nothing.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, noipa)) /* nor folded into its like */
#define BLOCKS 1000

static void say(unsigned long allocations, unsigned long bytes, unsigned long live,
                unsigned long peak, unsigned long temporary)
{
    char line[200];
    int n = snprintf(line, sizeof line, "%lu %lu %lu %lu %lu\n", allocations, bytes, live, peak,
                     temporary);
    if (write(1, line, (size_t)n) != n)
        _exit(9);
}

static void *volatile keep;

NOINLINE static void *site_malloc(size_t size)
{
    void *block = malloc(size);
    keep = block; /* so that it is not optimised away */
    return block;
}

NOINLINE static void *site_leak(size_t size)
{
    void *block = malloc(size);
    keep = block; /* so that it is not optimised away */
    return block;
}

/* 1000 blocks of 100 bytes up, down again, 10 leaked of 64: all of it with one thread. */
static int simple(void)
{
    static void *block[BLOCKS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++)
            block[i] = site_malloc(100);
        for (int i = 0; i < BLOCKS; i++)
            free(block[i]);
    }
    for (int i = 0; i < 10; i++)
        site_leak(64);
    for (int i = 0; i < 50; i++)
        free(site_malloc(7));
    say(3 * BLOCKS + 10 + 50, 3 * BLOCKS * 100ul + 640 + 350, 640, BLOCKS * 100, 53);
    return 0;
}

NOINLINE static void *site_realloc(void *block, size_t size)
{
    void *other = realloc(block, size);
    keep = other;
    return other;
}

/* A chain of realloc, one that fails, one of size 0, one of NULL. */
static int chain(void)
{
    char *p = NULL;
    unsigned long bytes = 0, count = 0;
    for (size_t size = 16; size <= 1 << 20; size *= 2) {
        p = site_realloc(p, size);
        p[0] = 1;
        bytes += size;
        count++;
    }
    volatile size_t huge = SIZE_MAX / 2;
    if (site_realloc(p, huge) || errno != ENOMEM)
        return 1;
    void *q = reallocarray(NULL, 10, 10);
    volatile size_t many = SIZE_MAX / 4;
    if (!q || reallocarray(q, many, 16))
        return 1;
    count++;
    bytes += 100;
    if (site_realloc(q, 0))
        return 1;
    /* At the peak: the last block of the chain alone, then 100 bytes beside it. */
    say(count, bytes, 1 << 20, (1 << 20) + 100, count - 1);
    return 0;
}

NOINLINE static void *site_posix(size_t align, size_t size)
{
    void *p = NULL;
    return posix_memalign(&p, align, size) == 0 ? p : NULL;
}

static int aligned(void)
{
    void *p[7];
    p[0] = site_posix(64, 1000);
    p[1] = aligned_alloc(4096, 8192);
    p[2] = memalign(256, 300);
    p[3] = valloc(5000);
    p[4] = pvalloc(5000);
    p[5] = calloc(30, 40);
    p[6] = strdup("fourteen bytes");
    for (int i = 0; i < 7; i++)
        if (!p[i] || (i < 5 && (uintptr_t)p[i] % (i == 0 ? 64 : i == 2 ? 256 : 4096)))
            return 1;
    volatile size_t bad = 3, huge = SIZE_MAX / 2, two = 2;
    void *untouched = p, *none = untouched;
    if (posix_memalign(&none, bad, 10) != EINVAL || none != untouched || calloc(huge, two * 2) ||
        malloc(huge))
        return 1;
    unsigned long sum = 1000 + 8192 + 300 + 5000 + 5000 + 1200 + 15;
    for (int i = 0; i < 7; i++)
        free(p[i]);
    free(NULL);
    say(7, sum, 0, sum, 1);
    return 0;
}

static void *pass[4][BLOCKS];
static pthread_barrier_t turn;

static void *giver(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < BLOCKS; i++)
        pass[me][i] = site_malloc(200 + (size_t)me);
    pthread_barrier_wait(&turn);
    for (int i = 0; i < BLOCKS; i++)
        free(pass[(me + 1) % 4][i]);
    return NULL;
}

/* Each of four threads frees what its neighbour allocated. */
static int across(void)
{
    pthread_t thread[4];
    pthread_barrier_init(&turn, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, giver, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    unsigned long sum = BLOCKS * (200ul + 201 + 202 + 203);
    say(4 * BLOCKS, sum, 0, sum, 0);
    return 0;
}

static void wait_for(int pipe)
{
    char byte;
    if (read(pipe, &byte, 1) != 1)
        _exit(8);
}

static void tell(int pipe)
{
    if (write(pipe, "x", 1) != 1)
        _exit(8);
}

#define MIB (1ul << 20)

/* The parent holds 20 MiB, then 5; one child 40 after that, then 10; a third 30 while the second
 * still holds 10: the peak of the tree is 5 + 10 + 30 = 45, though the peaks add up to 90. */
static int tree(void)
{
    int to[2], from[2];
    if (pipe(to) || pipe(from))
        return 1;
    void *mine = site_malloc(15 * MIB), *rest = site_malloc(5 * MIB);
    free(mine);
    pid_t second = fork();
    if (second == 0) {
        void *big = site_malloc(29 * MIB), *small = site_malloc(10 * MIB);
        free(big);
        tell(from[1]);
        wait_for(to[0]);
        free(small);
        _exit(0);
    }
    wait_for(from[0]);
    pid_t third = fork();
    if (third == 0) {
        free(site_malloc(30 * MIB));
        exit(0);
    }
    int status;
    waitpid(third, &status, 0);
    tell(to[1]);
    waitpid(second, &status, 0);
    (void)rest;
    say(5, 89 * MIB, 5 * MIB, 45 * MIB, 3);
    return 0;
}

/* The child frees what it inherited, and allocates of its own. */
static int inherited(void)
{
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        block[i] = site_malloc(100);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++)
            free(block[i]);
        for (int i = 0; i < 10; i++)
            site_leak(1000);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    say(BLOCKS + 10, BLOCKS * 100ul + 10000, BLOCKS * 100ul + 10000, 0, 0);
    return status;
}

static volatile sig_atomic_t handled;

/* As programs do, though they should not. tcache serves it in most cases. */
NOINLINE static void site_handler(int signal)
{
    (void)signal;
    void *p = malloc(48);
    handled++;
    free(p);
}

static int handler(void)
{
    signal(SIGPROF, site_handler);
    /* Blocks for the thread's cache, so that the handler never meets a lock of the allocator. */
    void *warm[7];
    for (int i = 0; i < 7; i++)
        warm[i] = malloc(48);
    for (int i = 0; i < 7; i++)
        free(warm[i]);
    struct itimerval often = {{0, 500}, {0, 500}};
    setitimer(ITIMER_PROF, &often, NULL);
    for (long i = 0; i < 1000000000 && handled < 60; i++)
        free(site_malloc(1000));
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &off, NULL);
    return handled < 50;
}

static sigjmp_buf out;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(out, 1);
}

/* Leaves whatever was under way, the allocator and the agent included, by a jump. Only an
 * allocator that does not mind may be under this: see lib_bump.c. */
static int jumping(void)
{
    static volatile int jumps, i;
    signal(SIGPROF, jump);
    struct itimerval once = {{0, 0}, {0, 700}};
    sigsetjmp(out, 1);
    if (++jumps < 300)
        setitimer(ITIMER_PROF, &once, NULL);
    while (jumps < 300) {
        void *p = site_malloc(1000);
        free(p);
        i++;
    }
    for (int n = 0; n < 100; n++)
        site_leak(10);
    return 0;
}

static void *churn(void *argument)
{
    unsigned long seed = (unsigned long)argument + 1;
    void *block[64] = {0};
    for (;;) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        unsigned slot = seed >> 58;
        free(block[slot]);
        block[slot] = site_malloc(16 + (seed >> 40) % 500);
    }
    return NULL;
}

/* Until it is killed. */
static int endless(void)
{
    pthread_t thread;
    for (long i = 0; i < 3; i++)
        pthread_create(&thread, NULL, churn, (void *)i);
    churn((void *)3);
    return 0;
}

NOINLINE static void *site_early(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

NOINLINE static void *site_late(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

/* A megabyte early and one late, and none at the end but a tenth of the first. */
static void rise_and_fall(void)
{
    static void *early[10], *late[10];
    for (int i = 0; i < 10; i++)
        early[i] = memset(site_early(100000), 1, 100000);
    usleep(1500000);
    for (int i = 0; i < 10; i++)
        late[i] = memset(site_late(100000), 1, 100000);
    usleep(1500000);
    for (int i = 0; i < 10; i++) {
        free(late[i]);
        if (i)
            free(early[i]);
    }
}

/* The same, and then it stays. */
static int lasting(void)
{
    rise_and_fall();
    pause();
    return 0;
}

static int phases(void)
{
    rise_and_fall();
    usleep(500000);
    say(20, 2000000, 100000, 2000000, 0);
    return 0;
}

/* Many live blocks, for the tables' own size. */
static int many(unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        site_leak(16 + i % 64);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } modes[] = {{"simple", simple},   {"chain", chain},     {"aligned", aligned},
                 {"across", across},   {"tree", tree},       {"inherited", inherited},
                 {"handler", handler}, {"jumping", jumping}, {"endless", endless},
                 {"phases", phases},   {"lasting", lasting}};
    if (argc == 3 && strcmp(argv[1], "many") == 0)
        return many(strtoul(argv[2], NULL, 10));
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run();
    return 2;
}
