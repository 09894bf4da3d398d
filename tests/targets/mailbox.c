/*
 * mailbox THREADS LIVES SLOTS: so many threads at once, each of so many lives one after the other,
 * put blocks into shared slots and free what stood there, whoever allocated it; now and then a
 * block is made larger first. One in a hundred is kept for good. Prints allocations and frees (a
 * reallocation is one of each), and the bytes that are left.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

#define TURNS 20000

struct block {
    uint64_t size, more[];
};

static _Atomic(struct block *) *slots;
static uint64_t slots_len;
static _Atomic uint64_t allocations, frees, bytes;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

KEPT struct block *site_send(uint64_t size)
{
    struct block *b = malloc(size);
    if (!b)
        abort();
    b->size = size;
    allocations++;
    bytes += size;
    return b;
}

KEPT struct block *site_grow(struct block *b)
{
    uint64_t size = b->size + 48;
    b = realloc(b, size);
    if (!b)
        abort();
    bytes += size - b->size;
    b->size = size;
    allocations++;
    frees++;
    return b;
}

KEPT void site_end(struct block *b)
{
    bytes -= b->size;
    frees++;
    free(b);
}

static void *live(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < TURNS; i++) {
        struct block *b = site_send(sizeof *b + 8 + next(&state) % 300);
        if (i % 100 == 0)
            continue; /* kept for good */
        b = atomic_exchange(&slots[next(&state) % slots_len], b);
        if (b && next(&state) % 8 == 0)
            b = site_grow(b);
        if (b)
            site_end(b);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argc > 3 ? strtol(argv[1], NULL, 10) : 4;
    long lives = argc > 3 ? strtol(argv[2], NULL, 10) : 3;
    slots_len = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;
    slots = calloc(slots_len, sizeof *slots);
    pthread_t thread[256];
    for (long life = 0; life < lives; life++) {
        for (long i = 0; i < threads && i < 256; i++)
            if (pthread_create(&thread[i], NULL, live, (void *)(uintptr_t)(life * 1000 + i)))
                abort();
        for (long i = 0; i < threads && i < 256; i++)
            pthread_join(thread[i], NULL);
    }
    printf("%llu %llu %llu\n", (unsigned long long)allocations, (unsigned long long)frees,
           (unsigned long long)bytes);
    return 0;
}
