/* T5. forkstorm [COUNT]: COUNT children, up to 32 at a time, that allocate, work briefly and end.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define AT_ONCE 32

static int reap(void)
{
    int status;
    must(wait(&status) > 0, "wait");
    return status == 0;
}

int main(int argc, char **argv)
{
    uint64_t count = argument(argc, argv, 1, 2000), good = 0;
    for (uint64_t i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            volatile char *block = malloc(1000 + i % 1000);
            block[0] = (char)work(i, 20);
            free((void *)block);
            _exit(0);
        }
        must(pid > 0, "fork");
        if (i + 1 >= AT_ONCE)
            good += (uint64_t)reap();
    }
    for (uint64_t left = count < AT_ONCE ? count : AT_ONCE - 1; left; left--)
        good += (uint64_t)reap();
    printf("%llu\n", (unsigned long long)good);
    return 0;
}
