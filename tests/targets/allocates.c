/*
 * allocates COUNT: a quarter of the bytes by site_a, three quarters by site_b, most of them freed
 * again, with work between. Prints what each has allocated.
 */
#include "work.h"

static void *volatile keep; /* so that nothing is optimised away */

KEPT void *site_a(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

KEPT void *site_b(size_t size)
{
    void *block = malloc(size);
    keep = block;
    return block;
}

int main(int argc, char **argv)
{
    static void *held[1000];
    uint64_t seed = 1, sum[2] = {0}, count = argument(argc, argv, 1, 2000000);
    while (count--) {
        seed = seed * 6364136223846793005u + 1;
        size_t slot = (seed >> 33) % 1000, size = 16 + (seed >> 40) % 4000;
        free(held[slot]);
        held[slot] = seed >> 63 ? site_a(size) : site_b(3 * size);
        sum[!(seed >> 63)] += seed >> 63 ? size : 3 * size;
        if (count % 2)
            seed = work(seed, 1);
    }
    printf("%llu %llu\n", (unsigned long long)sum[0], (unsigned long long)sum[1]);
    return 0;
}
