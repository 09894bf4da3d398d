/* The functions of arch.h for x86-64. */
#include "agent/arch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>

uint64_t arch_ip(const void *ucontext)
{
    const ucontext_t *uc = ucontext;
    return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* Waits that fail with EINTR after a handler whatever its flags say (signal(7)), and whose
 * arguments the kernel leaves as they were or brings up to date itself. */
static bool is_wait(uint32_t number)
{
    switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_futex:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
        return true;
    default:
        return false;
    }
}

/* Whether the wait has the signal blocked by a mask of its own: then it was another that ended it,
 * and ours came in when that one's handler returned. */
static bool is_kept_out(uint32_t number, const greg_t *reg, int signal)
{
    uint64_t mask = 0, at = number == SYS_ppoll         ? (uint64_t)reg[REG_R10]
                            : number == SYS_epoll_pwait ? (uint64_t)reg[REG_R8]
                            : number == SYS_pselect6    ? (uint64_t)reg[REG_R9]
                                                        : 0;
    if (at && number == SYS_pselect6)
        memcpy(&at, (const void *)(uintptr_t)at, sizeof at); /* a pair of address and size */
    if (at)
        memcpy(&mask, (const void *)(uintptr_t)at, sizeof mask);
    return mask >> (signal - 1) & 1;
}

/* The number of the system call that the ip has just left, as glibc calls them: "mov $n, %eax;
 * syscall"; UINT32_MAX if it has not. */
static uint32_t call_before(const uint8_t *code)
{
    uint32_t number;
    if (code[-2] != 0x0f || code[-1] != 0x05 || code[-7] != 0xb8)
        return UINT32_MAX;
    memcpy(&number, code - 6, sizeof number);
    return number;
}

/* Only these wait in the midst of a write. */
static bool may_wait(int fd)
{
    struct stat st;
    return raw2(SYS_fstat, fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode));
}

void arch_complete(void *ucontext)
{
    ucontext_t *uc = ucontext;
    greg_t *reg = uc->uc_mcontext.gregs;
    uint64_t done = (uint64_t)reg[REG_RAX], wanted = (uint64_t)reg[REG_RDX];
    if (reg[REG_RAX] <= 0 || done >= wanted)
        return;
    uint32_t number = call_before((const uint8_t *)(uintptr_t)reg[REG_RIP]);
    if ((number != SYS_write && number != SYS_sendto) || !may_wait((int)reg[REG_RDI]))
        return;
    while (done < wanted) {
        long more = raw6(number, reg[REG_RDI], reg[REG_RSI] + (greg_t)done, wanted - done,
                         reg[REG_R10], reg[REG_R8], reg[REG_R9]);
        if (more <= 0)
            break;
        done += (uint64_t)more;
    }
    reg[REG_RAX] = (greg_t)done;
}

bool arch_restart(void *ucontext, int signal)
{
    ucontext_t *uc = ucontext;
    greg_t *reg = uc->uc_mcontext.gregs;
    if (reg[REG_RAX] != -EINTR)
        return false;
    uint32_t number = call_before((const uint8_t *)(uintptr_t)reg[REG_RIP]);
    if (!is_wait(number) || is_kept_out(number, reg, signal))
        return false;
    reg[REG_RAX] = number;
    reg[REG_RIP] -= 2;
    return true;
}
