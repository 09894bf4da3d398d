/* T7. spawn [COUNT]: vfork, posix_spawn and clone(CLONE_VM) children, COUNT of each. */
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

extern char **environ;

static char *child[] = {"spawn-child", "child", NULL};
static uint64_t shared; /* a CLONE_VM child writes into its parent's memory */

static int in_clone(void *context)
{
    shared += *(int *)context;
    return 0;
}

static int ended_well(pid_t pid, int flags)
{
    int status;
    must(pid > 0 && waitpid(pid, &status, flags) == pid, "child");
    return status == 0;
}

KEPT pid_t start_by_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execv("/proc/self/exe", child);
        _exit(127);
    }
    return pid;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "child") == 0)
        return work(1, 500) == 0;
    int count = (int)argument(argc, argv, 1, 50), one = 1, good[3] = {0};
    static char stack[64 << 10] __attribute__((aligned(16)));
    for (int i = 0; i < count; i++) {
        pid_t pid;
        good[0] += ended_well(start_by_vfork(), 0);
        must(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, child, environ) == 0, "posix_spawn");
        good[1] += ended_well(pid, 0);
        good[2] += ended_well(clone(in_clone, stack + sizeof stack, CLONE_VM, &one), __WCLONE);
    }
    printf("vfork %d, spawn %d, clone %d, shared %llu\n", good[0], good[1], good[2],
           (unsigned long long)shared);
    return 0;
}
