/* short [COUNT] [UNITS]: COUNT processes, one after another, that execute and do UNITS of work. */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

KEPT uint64_t brief(uint64_t units)
{
    return work(1, units);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "child") == 0)
        return brief(argument(argc, argv, 2, 0)) == 0;
    uint64_t count = argument(argc, argv, 1, 200), good = 0;
    char *child[] = {"short-child", "child", argc > 2 ? argv[2] : "1000", NULL};
    for (uint64_t i = 0; i < count; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            execv("/proc/self/exe", child);
            _exit(127);
        }
        must(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
        good += status == 0;
    }
    printf("%llu\n", (unsigned long long)good);
    return 0;
}
