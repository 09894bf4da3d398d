/*
 * inline [UNITS]: `inner` is inlined into `middle`, and that into `outer`; prints the lines on
 * which each does its work, which is where samples must be.
 */
#include "work.h"

#define INLINED static inline __attribute__((always_inline))

enum { INNER_LINE = __LINE__ + 5, MIDDLE_LINE = __LINE__ + 11, OUTER_LINE = __LINE__ + 17 };

INLINED uint64_t inner(uint64_t seed, uint64_t units)
{
    for (uint64_t i = 0; i < units * 600; i++)
        seed = seed * 6364136223846793005u + (seed >> 29) + 1;
    return seed;
}

INLINED uint64_t middle(uint64_t seed, uint64_t units)
{
    seed = inner(seed, units);
    return seed ^ units;
}

KEPT uint64_t outer(uint64_t seed, uint64_t units)
{
    seed = middle(seed, units);
    return seed + 1;
}

int main(int argc, char **argv)
{
    uint64_t result = outer(1, argument(argc, argv, 1, 500000));
    printf("inner %d\nmiddle %d\nouter %d\n", INNER_LINE, MIDDLE_LINE, OUTER_LINE);
    printf("%016llx\n", (unsigned long long)result);
    return 0;
}
