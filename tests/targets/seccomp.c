/*
 * T13. seccomp [UNITS]: allows itself a handful of system calls, on pain of SIGSYS, then works and
 * allocates. Whoever is inside must not call anything else on its behalf.
 */
#include <sys/syscall.h>

#include "filter.h"

static struct sock_filter rules[] = {
    FILTER_BEGIN, ALLOW(read), ALLOW(write),  ALLOW(exit_group), ALLOW(rt_sigreturn),
    ALLOW(brk),   ALLOW(mmap), ALLOW(munmap), DENY_OTHERS,
};

int main(int argc, char **argv)
{
    printf("before\n"); /* stdio makes its buffer, and asks what stdout is, while it may */
    filter_enter(FILTER(rules));
    uint64_t seed = 1, rounds = argument(argc, argv, 1, 300000) / 1000;
    while (rounds--) {
        seed = work(seed, 1000);
        free(memset(malloc(200000), 1, 200000));
    }
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
