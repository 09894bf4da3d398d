/*
 * tree [UNITS|MSms]: a tree of processes with known shares of the work: the parent 10 %, a fork
 * 40 %, a fork that executes 20 %, a vfork that executes 20 %, a posix_spawn 10 %. Each kind does
 * its work in a function of its own. With "300ms" they are shares of that much CPU time, by each
 * process's own clock: how long a unit takes depends on what runs on the CPU's other half.
 */
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

extern char **environ;

KEPT uint64_t in_parent(uint64_t units)
{
    return work(1, units);
}

KEPT uint64_t in_fork(uint64_t units)
{
    return work(2, units);
}

KEPT uint64_t in_exec(uint64_t units)
{
    return work(3, units);
}

static bool by_clock; /* what is asked for is not units but ms of CPU time */

static uint64_t spend(uint64_t (*in)(uint64_t), uint64_t amount)
{
    struct timespec used;
    uint64_t result = by_clock ? 0 : in(amount);
    while (by_clock && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 &&
           (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000 < amount)
        result = in(100);
    return result;
}

static void await(pid_t pid, const char *kind)
{
    int status;
    must(pid > 0 && waitpid(pid, &status, 0) == pid, kind);
    printf("%s %d\n", kind, status);
    fflush(stdout);
}

/* In a child only; returns what _exit shall say if exec fails. */
static int execute(char *name, char *units)
{
    char *argv[] = {name, by_clock ? "clock" : "exec", units, NULL};
    execv("/proc/self/exe", argv);
    return 127;
}

int main(int argc, char **argv)
{
    by_clock = argc > 1 && (strcmp(argv[1], "clock") == 0 || strstr(argv[1], "ms"));
    if (argc == 3)
        return spend(in_exec, argument(argc, argv, 2, 0)) == 0;
    uint64_t tenth = argument(argc, argv, 1, 1000000) / 10;
    char one[24], two[24];
    snprintf(one, sizeof one, "%llu", (unsigned long long)tenth);
    snprintf(two, sizeof two, "%llu", (unsigned long long)tenth * 2);

    pid_t pid = fork();
    if (pid == 0)
        _exit(spend(in_fork, 4 * tenth) == 0);
    await(pid, "fork");

    pid = fork();
    if (pid == 0)
        _exit(execute("tree-exec", two));
    await(pid, "exec");

    pid = vfork();
    if (pid == 0)
        _exit(execute("tree-vfork", two));
    await(pid, "vfork");

    char *spawned[] = {"tree-spawn", by_clock ? "clock" : "exec", one, NULL};
    must(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, spawned, environ) == 0, "posix_spawn");
    await(pid, "spawn");

    printf("%016llx\n", (unsigned long long)spend(in_parent, tenth));
    return 0;
}
