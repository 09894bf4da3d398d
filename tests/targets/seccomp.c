/*
 * T13. seccomp [UNITS]: allows itself a handful of system calls, on pain of SIGSYS, then works and
 * allocates. Whoever is inside must not call anything else on its behalf.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "work.h"

#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1),                                        \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(read),
    ALLOW(write),
    ALLOW(exit_group),
    ALLOW(rt_sigreturn),
    ALLOW(brk),
    ALLOW(mmap),
    ALLOW(munmap),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

int main(int argc, char **argv)
{
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    printf("before\n"); /* stdio makes its buffer, and asks what stdout is, while it may */
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
    uint64_t seed = 1, rounds = argument(argc, argv, 1, 300000) / 1000;
    while (rounds--) {
        seed = work(seed, 1000);
        free(memset(malloc(200000), 1, 200000));
    }
    printf("%016llx\n", (unsigned long long)seed);
    return 0;
}
