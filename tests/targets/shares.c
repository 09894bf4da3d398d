/*
 * shares [UNITS] [ROUND]: 60 % of the work in `most`, 30 % in `some`, 10 % in `least`, in turns of
 * ROUND units on average: from half of that to one and a half, so as not to keep step with a clock.
 */
#include "work.h"

KEPT uint64_t most(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t some(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t least(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t round_of_work(uint64_t seed, uint64_t units)
{
    seed = most(seed, units * 6 / 10);
    seed = some(seed, units * 3 / 10);
    return least(seed, units / 10);
}

int main(int argc, char **argv)
{
    uint64_t units = argument(argc, argv, 2, 1000), seed = 1;
    uint64_t rounds = argument(argc, argv, 1, 1000000) / units;
    for (uint64_t i = 0; i < rounds; i++)
        seed = round_of_work(seed, units * (50 + i * 37 % 101) / 1000 * 10);
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
