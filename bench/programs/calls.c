/*
 * CPU in deep and shallow call trees, one thread, the same work every time; built without frame
 * pointers. Prints the CPU time that it used, so that what a profiler adds can be seen.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEEP __attribute__((noinline, noclone, noipa))

typedef uint64_t step(int depth, uint64_t path);

static volatile uint64_t sink;
static uint8_t bytes[65536];
static int numbers[65536];

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

KEEP static uint64_t hash(size_t n)
{
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 1099511628211ull;
    return h;
}

KEEP static uint64_t spin(uint64_t x, int n)
{
    while (n--)
        x = x * 6364136223846793005ull + (x >> 29);
    return x;
}

static step a, b, c, d;
static step *const turns[4] = {a, b, c, d};

/* Each turn has a frame of its own size, and goes on to another by chance. */
#define TURN(name, size)                                                                           \
    KEEP static uint64_t name(int depth, uint64_t path)                                            \
    {                                                                                              \
        volatile char room[size];                                                                  \
        room[0] = (char)depth;                                                                     \
        uint64_t r =                                                                               \
            depth ? turns[path >> (depth & 31) & 3](depth - 1, path * 2862933555777941757ull + 3)  \
            : path & 1 ? hash(3000)                                                                \
                       : spin(path, 3000);                                                         \
        sink += (uint64_t)room[0];                                                                 \
        return r;                                                                                  \
    }

TURN(a, 40)
TURN(b, 64)
TURN(c, 88)
TURN(d, 112)

KEEP static void sort(int low, int high)
{
    if (low >= high)
        return;
    int pivot = numbers[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (numbers[i] < pivot)
            i++;
        while (numbers[j] > pivot)
            j--;
        if (i <= j) {
            int t = numbers[i];
            numbers[i++] = numbers[j];
            numbers[j--] = t;
        }
    }
    sort(low, j);
    sort(i, high);
    sink += (uint64_t)numbers[low];
}

KEEP static void shallow(void)
{
    for (int i = 0; i < 8000; i++)
        sink += a(4, next_random());
}

KEEP static void deep(void)
{
    for (int i = 0; i < 8000; i++)
        sink += b(30, next_random());
}

KEEP static void sorting(void)
{
    for (int i = 0; i < 65536; i++)
        numbers[i] = (int)(next_random() & 0xffffff);
    sort(0, 65535);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 60;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random();
    for (long i = 0; i < rounds; i++) {
        shallow();
        deep();
        for (int k = 0; k < 4; k++)
            sorting();
    }
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    fprintf(stderr, "cpu %lld.%06ld\n", (long long)t.tv_sec, t.tv_nsec / 1000);
    return 0;
}
