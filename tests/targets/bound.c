/*
 * bound SECONDS: built for fixed addresses, and with the addresses of malloc and free in pointers
 * of its own, so that both are its own ways to the allocator's. Allocates from bound_site until its
 * time is up; prints "done" and ends with 7.
 */
#include <time.h>

#include "work.h"

typedef void *(*taking)(size_t);
typedef void (*giving)(void *);
static taking volatile take;
static giving volatile give;
static void *volatile keep;

KEPT void *bound_site(size_t size)
{
    void *block = take(size);
    keep = block;
    return block;
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (time_t)argument(argc, argv, 1, 3);
    uint64_t seed = 1;
    take = malloc;
    give = free;
    while (time(NULL) < end) {
        void *a = bound_site(1000), *b = malloc(500);
        seed = work(seed, 20);
        give(b);
        free(a);
    }
    puts("done");
    return 7 + (seed == 0);
}
