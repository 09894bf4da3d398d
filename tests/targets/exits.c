/* exits status N | signal N | segv | abort: works a little, then ends in the way asked for. */
#include <signal.h>
#include <unistd.h>

#include "work.h"

KEPT int touch(volatile int *nowhere)
{
    return *nowhere;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "status";
    int number = (int)argument(argc, argv, 2, 0);
    printf("%016llx\n", (unsigned long long)work(1, 100000));
    fflush(stdout);
    if (strcmp(how, "signal") == 0)
        kill(getpid(), number);
    else if (strcmp(how, "segv") == 0)
        return touch(NULL);
    else if (strcmp(how, "abort") == 0)
        abort();
    return number;
}
