/* deep [DEPTH] [UNITS]: all work at the end of DEPTH recursive calls of `descend`. */
#include "work.h"

KEPT uint64_t bottom(uint64_t units)
{
    return work(1, units);
}

KEPT uint64_t descend(uint64_t depth, uint64_t units)
{
    /* The addition keeps the call from becoming a jump. */
    return depth ? descend(depth - 1, units) + 1 : bottom(units);
}

int main(int argc, char **argv)
{
    uint64_t depth = argument(argc, argv, 1, 100), units = argument(argc, argv, 2, 500000);
    printf("%016llx\n", (unsigned long long)descend(depth, units));
    return 0;
}
