/* The functions of arch.h for x86-64. */
#include "agent/arch.h"

#include <errno.h>
#include <string.h>
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

bool arch_restart(void *ucontext)
{
    ucontext_t *uc = ucontext;
    greg_t *reg = uc->uc_mcontext.gregs;
    if (reg[REG_RAX] != -EINTR)
        return false;
    const uint8_t *code = (const uint8_t *)(uintptr_t)reg[REG_RIP];
    if (code[-2] != 0x0f || code[-1] != 0x05 || code[-7] != 0xb8)
        return false;
    uint32_t number;
    memcpy(&number, code - 6, sizeof number);
    if (!is_wait(number))
        return false;
    reg[REG_RAX] = number;
    reg[REG_RIP] -= 2;
    return true;
}
