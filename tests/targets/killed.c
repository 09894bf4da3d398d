/* T1. killed [UNITS]: works, then dies by a SIGKILL it sends itself, without any farewell. */
#include <signal.h>
#include <unistd.h>

#include "work.h"

KEPT uint64_t before_the_end(uint64_t units)
{
    return work(1, units);
}

int main(int argc, char **argv)
{
    printf("%016llx\n", (unsigned long long)before_the_end(argument(argc, argv, 1, 300000)));
    fflush(stdout);
    kill(getpid(), SIGKILL);
    return 0;
}
