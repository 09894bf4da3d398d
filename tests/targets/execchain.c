/* T8. execchain [COUNT] [UNITS]: one process that executes itself COUNT times and works each time.
 */
#include <unistd.h>

#include "work.h"

KEPT uint64_t link_of_chain(uint64_t units)
{
    return work(1, units);
}

int main(int argc, char **argv)
{
    uint64_t left = argument(argc, argv, 1, 10), units = argument(argc, argv, 2, 50000);
    printf("%llu %016llx\n", (unsigned long long)left, (unsigned long long)link_of_chain(units));
    fflush(stdout);
    if (!left)
        return 0;
    char next[24], same[24];
    snprintf(next, sizeof next, "%llu", (unsigned long long)left - 1);
    snprintf(same, sizeof same, "%llu", (unsigned long long)units);
    char *again[] = {"execchain", next, same, NULL};
    execv("/proc/self/exe", again);
    must(0, "execv");
    return 99;
}
