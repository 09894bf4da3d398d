/* shares [UNITS]: 60 % of the work in `most`, 30 % in `some`, 10 % in `least`. */
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

KEPT uint64_t round_of_work(uint64_t seed)
{
    seed = most(seed, 600);
    seed = some(seed, 300);
    return least(seed, 100);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argument(argc, argv, 1, 1000000) / 1000, seed = 1;
    while (rounds--)
        seed = round_of_work(seed);
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
