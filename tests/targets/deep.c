/* deep [DEPTH] [UNITS]: all work at the end of DEPTH recursive calls of `descend`. */
#include "work.h"

KEPT uint64_t bottom(uint64_t units)
{
    return work(1, units);
}

KEPT uint64_t descend(uint64_t depth, uint64_t units)
{
    if (!depth)
        return bottom(units);
    uint64_t below = descend(depth - 1, units);
    /* Touched after the call: else it becomes a jump, or a loop that adds. */
    __asm__ volatile("" : "+r"(below));
    return below + 1;
}

int main(int argc, char **argv)
{
    uint64_t depth = argument(argc, argv, 1, 100), units = argument(argc, argv, 2, 500000);
    printf("%016llx\n", (unsigned long long)descend(depth, units));
    return 0;
}
