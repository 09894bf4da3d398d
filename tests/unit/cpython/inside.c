/*
 * A library that inside.py loads into its own interpreter: walks the calling thread's frames as the
 * agent does, now and from signals at any moment, and tells what that costs.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpython/cpython.h"

#define DEPTH 2048
#define EXPORT __attribute__((visibility("default")))

EXPORT int inside_open(void);
EXPORT int inside_walk(char *to, size_t size);
EXPORT unsigned long inside_walks(void);
EXPORT double inside_cost(int depth, int rounds);
EXPORT int inside_start(unsigned long outermost);
EXPORT void inside_stop(unsigned long counts[8]);

static struct cpython py;
static struct cpython_pages pages, handler_pages;
static uint64_t stack_high;

static bool symbol(void *ctx, const char *name, uint64_t *address)
{
    (void)ctx;
    *address = (uint64_t)dlsym(RTLD_DEFAULT, name);
    return *address != 0;
}

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    stack_high = (uint64_t)low + size;
}

static size_t walk(struct cpython_memory *memory, struct cpython_pages *known,
                   struct cpython_frame *frame, size_t max, struct cpython_end *end)
{
    cpython_memory_local(memory, known, cpython_probe, (uint64_t)__builtin_frame_address(0),
                         stack_high);
    void *(*this_thread)(void);
    memcpy(&this_thread, &py.this_thread, sizeof(this_thread));
    return cpython_walk(&py, memory, (uint64_t)this_thread(), frame, max, end);
}

int inside_open(void)
{
    struct cpython_memory memory;
    const struct cpython_module module = {NULL, symbol, NULL};
    uint32_t key;
    void *(*this_thread)(void);
    find_stack();
    cpython_memory_local(&memory, &pages, cpython_probe, 0, 0);
    int fault = cpython_open(&py, &module, &memory);
    if (fault)
        return fault;
    /* The other way to the same thread state. */
    memcpy(&this_thread, &py.this_thread, sizeof(this_thread));
    fault = cpython_thread_key(&py, &memory, &key);
    if (!fault && pthread_getspecific(key) != this_thread())
        return -100;
    return fault == CPYTHON_ABSENT && py.minor == 6 ? 0 : fault;
}

int inside_walk(char *to, size_t size)
{
    static struct cpython_frame frame[DEPTH];
    static uint8_t table[1 << 16];
    struct cpython_memory memory;
    struct cpython_code code;
    struct cpython_end end;
    size_t count = walk(&memory, &pages, frame, DEPTH, &end), length = 0;
    for (size_t i = 0; i < count; i++) {
        if (cpython_code_read(&py, &memory, frame[i].code, &code))
            return -1;
        ssize_t bytes = cpython_table_read(&memory, &code, table, sizeof(table));
        int32_t line =
            cpython_line(py.layout.lines, table, (size_t)bytes, code.first_line, frame[i].lasti);
        length += (size_t)snprintf(to + length, size - length, "%s\t%s\t%d\n", code.name,
                                   code.filename, line);
        if (bytes < 0 || length >= size)
            return -2;
    }
    return end.reason == CPYTHON_COMPLETE ? (int)count : -3;
}

/* Nanoseconds of a walk of `depth` frames: the least of many rounds. */
double inside_cost(int depth, int rounds)
{
    static struct cpython_frame frame[DEPTH];
    struct cpython_memory memory;
    double least = 1e9;
    for (int i = 0; i < rounds; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int j = 0; j < 100; j++)
            walk(&memory, &pages, frame, (size_t)depth, NULL);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double took = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        least = took / 100 < least ? took / 100 : least;
    }
    return least;
}

static unsigned long count[8]; /* by reason; 6: outermost frame not the expected; 7: all */
static unsigned long expected;
static atomic_bool going;
static pthread_t target, shooter;

static void on_signal(int number)
{
    static struct cpython_frame frame[DEPTH];
    struct cpython_memory memory;
    struct cpython_end end;
    (void)number;
    size_t frames = walk(&memory, &handler_pages, frame, DEPTH, &end);
    count[end.reason]++;
    count[7]++;
    if (end.reason == CPYTHON_COMPLETE && (!frames || frame[frames - 1].code != expected))
        count[6]++;
}

static void *shoot(void *unused)
{
    const struct timespec pause = {0, 50000};
    while (atomic_load(&going)) {
        pthread_kill(target, SIGUSR2);
        nanosleep(&pause, NULL);
    }
    return unused;
}

int inside_start(unsigned long outermost)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    expected = outermost;
    target = pthread_self();
    atomic_store(&going, true);
    memset(count, 0, sizeof(count));
    return sigaction(SIGUSR2, &action, NULL) || pthread_create(&shooter, NULL, shoot, NULL);
}

unsigned long inside_walks(void)
{
    return *(volatile unsigned long *)&count[7];
}

void inside_stop(unsigned long counts[8])
{
    atomic_store(&going, false);
    pthread_join(shooter, NULL);
    memcpy(counts, count, sizeof(count));
}
