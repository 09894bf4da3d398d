/*
 * T28. limits: lowers its own limits on descriptors and file sizes, and checks that it can use what
 * they leave, to the last one: whoever is inside must not have taken any of it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static int open_all(void)
{
    int opened = 0;
    while (open("/dev/null", O_RDONLY) >= 0)
        opened++;
    return opened;
}

static long write_all(void)
{
    char name[] = "/tmp/limits.XXXXXX", block[100] = {0};
    int fd = mkstemp(name);
    must(fd >= 0, "mkstemp");
    unlink(name);
    long written = 0;
    for (ssize_t n; (n = write(fd, block, sizeof block)) > 0;)
        written += n;
    close(fd);
    return written;
}

int main(void)
{
    struct rlimit few = {64, 64}, small = {8000, 8000}, none = {0, 0};
    volatile uint64_t sink = work(1, 100000);
    signal(SIGXFSZ, SIG_IGN);
    must(setrlimit(RLIMIT_FSIZE, &small) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0 &&
             setrlimit(RLIMIT_MEMLOCK, &none) == 0,
         "setrlimit");
    printf("wrote %ld bytes\n", write_all());
    printf("opened %d\n", open_all());
    sink = work(sink, 100000);
    return sink == 0;
}
