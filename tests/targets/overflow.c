/* T14. overflow: works, then overflows its stack and dies of SIGSEGV. */
#include "work.h"

KEPT uint64_t without_end(uint64_t depth)
{
    volatile char filler[512];
    filler[0] = (char)depth;
    return without_end(depth + 1) + (uint64_t)filler[0];
}

int main(int argc, char **argv)
{
    printf("%016llx\n", (unsigned long long)work(1, argument(argc, argv, 1, 100000)));
    fflush(stdout);
    return (int)without_end(0);
}
