/* Allocations whose sums, peak and leaks are known to the byte. */
#include <stdlib.h>
#include <string.h>

#include "truth/truth.h"

#define SMALL 60000
#define HELD 512 /* small blocks at a time */
#define LARGE 40
#define LEAKS 25

void *truth_small(size_t size);
void *truth_large(size_t size);
void *truth_leaks(size_t size);

static void *volatile keep; /* so that nothing is optimised away */

KEPT void *truth_small(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

KEPT void *truth_large(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

KEPT void *truth_leaks(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

struct sums {
    uint64_t count, bytes;
};

static void add(struct sums *s, size_t size)
{
    s->count++;
    s->bytes += size;
}

/* A server's way: many that live shortly, with some work between. Returns what is held at last. */
static uint64_t churn(void **held, size_t *sizes, struct sums *sum, uint64_t *seed)
{
    uint64_t live = 0;
    for (int i = 0; i < SMALL; i++) {
        size_t at = (size_t)(*seed >> 40) % HELD, size = 16 + (size_t)(*seed >> 33) % 500;
        free(held[at]);
        held[at] = truth_small(size);
        live += size - sizes[at];
        sizes[at] = size;
        add(sum, size);
        *seed = work(*seed, 3);
    }
    return live;
}

static void claim(FILE *out, const char *name, uint64_t bytes)
{
    fprintf(out, "total %s %llu\n", name, (unsigned long long)bytes);
}

void truth_heap(FILE *out)
{
    static void *held[HELD], *large[LARGE];
    static size_t sizes[HELD];
    struct sums small = {0}, big = {0}, leaked = {0};
    uint64_t seed = 1, live = churn(held, sizes, &small, &seed);
    for (size_t i = 0; i < LEAKS; i++) {
        memset(truth_leaks(1000 + i), 1, 1000);
        add(&leaked, 1000 + i);
    }
    for (size_t i = 0; i < LARGE; i++) { /* the peak: all of them, what is held, and the leaks */
        large[i] = truth_large(100000 + 1000 * i);
        memset(large[i], 1, 100000);
        add(&big, 100000 + 1000 * i);
    }
    for (size_t i = 0; i < LARGE; i++)
        free(large[i]);
    for (size_t i = 0; i < HELD; i++)
        free(held[i]);
    fputs("kind heap\nevent heap:allocated\nbound 0.1%\n", out);
    claim(out, "truth_small", small.bytes);
    claim(out, "truth_large", big.bytes);
    claim(out, "truth_leaks", leaked.bytes);
    fprintf(out, "count truth_small %llu\n", (unsigned long long)small.count);
    fputs("kind peak\nevent heap:peak\nbound 0.1%\n", out);
    claim(out, "truth_small", live);
    claim(out, "truth_large", big.bytes);
    claim(out, "truth_leaks", leaked.bytes);
    fputs("kind leaks\nevent heap:live\nbound 0.1%\n", out);
    claim(out, "truth_small", 0);
    claim(out, "truth_leaks", leaked.bytes);
    fprintf(out, "# %016llx\n", (unsigned long long)seed);
}
