/*
 * mixture [UNITS] [PERMILLE]: of each thousand units of work 300 are done in `reading`, 200 in
 * `writing`, and PERMILLE/1000 of 500 in `suspect`: 1030 makes that one function 3 % slower.
 */
#include "work.h"

KEPT uint64_t reading(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t suspect(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

KEPT uint64_t writing(uint64_t seed, uint64_t units)
{
    return work(seed, units);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argument(argc, argv, 1, 300000) / 1000, seed = 1;
    uint64_t permille = argument(argc, argv, 2, 1000);
    while (rounds--) {
        seed = reading(seed, 300);
        seed = suspect(seed, permille / 2);
        seed = writing(seed, 200);
    }
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
