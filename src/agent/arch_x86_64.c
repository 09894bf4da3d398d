/* The functions of arch.h for x86-64. */
#include "agent/arch.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>

uint64_t arch_ip(const void *ucontext)
{
    const ucontext_t *uc = ucontext;
    return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
}

/* What rcx holds, which every system call overwrites anyway, where the outcome of one belongs to a
 * handler of the program's: no address that there is. */
#define OWED 0x50de0000000050deull

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
    case SYS_epoll_pwait2:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
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

/* Calls that the kernel makes again after handlers with SA_RESTART, and lets fail after others. */
static bool is_interruptible(uint32_t number, const greg_t *reg)
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_open:
    case SYS_openat:
    case SYS_ioctl:
    case SYS_fcntl:
    case SYS_flock:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_getrandom:
    case SYS_splice:
    case SYS_tee:
        return true;
    case SYS_futex: /* those with priority inheritance are made again in any case */
        return (reg[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT ||
               (reg[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    default:
        return false;
    }
}

/* Whether the wait has the signal blocked by a mask of its own: then it was another that ended it,
 * and ours came in when that one's handler returned. */
static bool is_kept_out(uint32_t number, const greg_t *reg, int signal)
{
    uint64_t mask = 0, at = number == SYS_ppoll           ? (uint64_t)reg[REG_R10]
                            : number == SYS_epoll_pwait   ? (uint64_t)reg[REG_R8]
                            : number == SYS_epoll_pwait2  ? (uint64_t)reg[REG_R8]
                            : number == SYS_pselect6      ? (uint64_t)reg[REG_R9]
                            : number == SYS_rt_sigsuspend ? (uint64_t)reg[REG_RDI]
                                                          : 0;
    if (at && number == SYS_pselect6)
        memcpy(&at, (const void *)(uintptr_t)at, sizeof at); /* a pair of address and size */
    if (at)
        memcpy(&mask, (const void *)(uintptr_t)at, sizeof mask);
    return mask >> (signal - 1) & 1;
}

/* The number of the system call that the ip has just left, as glibc calls them: "mov $n, %eax;
 * syscall", or "xor %eax, %eax; syscall" for 0, which is read; UINT32_MAX if it has not. */
static uint32_t call_before(const uint8_t *code)
{
    uint32_t number;
    if (code[-2] != 0x0f || code[-1] != 0x05)
        return UINT32_MAX;
    if (code[-4] == 0x31 && code[-3] == 0xc0)
        return 0;
    if (code[-7] != 0xb8)
        return UINT32_MAX;
    memcpy(&number, code - 6, sizeof number);
    return number;
}

const void *arch_second(const void *ucontext)
{
    const ucontext_t *uc = ucontext;
    return (const void *)(uintptr_t)uc->uc_mcontext.gregs[REG_RSI];
}

const void *arch_third(const void *ucontext)
{
    const ucontext_t *uc = ucontext;
    return (const void *)(uintptr_t)uc->uc_mcontext.gregs[REG_RDX];
}

void arch_owe(const void *ucontext, bool strict)
{
    greg_t *reg = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)(uintptr_t)reg[REG_RIP];
    if (call_before(code) != UINT32_MAX ||
        (strict && reg[REG_RCX] == reg[REG_RIP] + 2 && call_before(code + 2) == reg[REG_RAX]))
        reg[REG_RCX] = (greg_t)OWED;
}

/* The call was to be made again for the sake of our signal; without it, it would have failed. */
static void fail(greg_t *reg)
{
    uint32_t number = call_before((const uint8_t *)(uintptr_t)reg[REG_RIP] + 2);
    if (number != reg[REG_RAX] || !is_interruptible(number, reg))
        return;
    reg[REG_RAX] = -EINTR;
    reg[REG_RIP] += 2;
}

/* Only these wait in the midst of a write. */
static bool may_wait(int fd)
{
    struct stat st;
    return raw2(SYS_fstat, fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode));
}

/* Writes what a write that was cut short has left. */
static void complete(greg_t *reg)
{
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

static void restart(greg_t *reg, int signal)
{
    uint32_t number = call_before((const uint8_t *)(uintptr_t)reg[REG_RIP]);
    if (!is_wait(number) || is_kept_out(number, reg, signal))
        return;
    reg[REG_RAX] = number;
    reg[REG_RIP] -= 2;
}

void arch_resume(void *ucontext, int signal, bool quiet)
{
    greg_t *reg = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
    if ((uint64_t)reg[REG_RCX] == OWED)
        fail(reg);
    else if (reg[REG_RAX] == -EINTR)
        restart(reg, signal);
    else if (!quiet)
        complete(reg);
}
