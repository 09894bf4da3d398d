/* System call filters of programs that put themselves under one: rules by name, and the way in. */
#ifndef SONDE_TARGETS_FILTER_H
#define SONDE_TARGETS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "work.h"

#define FILTER_BEGIN BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FILTER_IF(name, answer)                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)
#define ALLOW(name) FILTER_IF(name, SECCOMP_RET_ALLOW)
#define DENY(name) FILTER_IF(name, SECCOMP_RET_KILL_PROCESS)
#define ALLOW_OTHERS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define DENY_OTHERS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

#define FILTER(rules)                                                                              \
    (struct sock_fprog)                                                                            \
    {                                                                                              \
        .len = sizeof(rules) / sizeof *(rules), .filter = (rules)                                  \
    }

static inline void filter_enter(struct sock_fprog program)
{
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0, "seccomp");
}

#endif
