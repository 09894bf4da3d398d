/*
 * T27. steady [UNITS]: works in many different stacks, so that a recorder has much to write, and
 * says at the end that nothing has stopped it.
 */
#include "work.h"

KEPT uint64_t left(uint64_t path, uint64_t seed);
KEPT uint64_t right(uint64_t path, uint64_t seed);

static uint64_t follow(uint64_t path, uint64_t seed)
{
    if (path <= 1)
        return work(seed, 1);
    return path & 1 ? left(path >> 1, seed) : right(path >> 1, seed);
}

KEPT uint64_t left(uint64_t path, uint64_t seed)
{
    return follow(path, seed) + 1;
}

KEPT uint64_t right(uint64_t path, uint64_t seed)
{
    return follow(path, seed) + 2;
}

int main(int argc, char **argv)
{
    uint64_t units = argument(argc, argv, 1, 500000), seed = 1;
    for (uint64_t i = 0; i < units; i++)
        seed = follow(0x10000 + i % 0x10000, seed);
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
