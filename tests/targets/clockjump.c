/*
 * T29. clockjump [UNITS]: a child whose monotonic clock is a day ahead of its parent's, in a time
 * namespace of its own; where that is not allowed, just a child. Its data must still be in order.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

KEPT uint64_t tomorrow(uint64_t units)
{
    return work(2, units);
}

static void jump(void)
{
    static const char offset[] = "monotonic 86400 0\n";
    if (unshare(CLONE_NEWTIME) != 0)
        return;
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    must(fd >= 0 && write(fd, offset, sizeof offset - 1) == (ssize_t)sizeof offset - 1, "offset");
    close(fd);
}

int main(int argc, char **argv)
{
    uint64_t units = argument(argc, argv, 1, 300000) / 2;
    uint64_t today = work(1, units);
    jump();
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(tomorrow(units) == 0);
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
    printf("%016llx %d\n", (unsigned long long)today, status);
    return 0;
}
