/*
 * What the agent must know about a processor besides unwinding: how to call the kernel without
 * libc (no errno, no cancellation, nothing that a handler may not do), where a thread's control
 * block lies, and how to repeat a system call that the agent's own signal cut short.
 *
 * An arch_<name>.h defines
 *   raw_syscall(number, a … f)  the kernel's answer: a value or a negative errno
 *   arch_thread_pointer()       the address of the thread's control block
 *   arch_ticks()                a counter that runs evenly, if the collector said that it does
 *   arch_keys_equal(keys, key)  of eight keys, 16 bytes in order: two bits for each that is `key`
 *   arch_code_before, _after    how many bytes around the ip arch_resume looks at
 */
#ifndef SONDE_AGENT_ARCH_H
#define SONDE_AGENT_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "agent/arch_x86_64.h"
#else
#error "no arch_<name>.h for this processor yet; see the list at the top of arch.h"
#endif

/* The ip in a signal handler's third argument. */
uint64_t arch_ip(const void *ucontext);

/* That handler's own second and third argument, where the interrupted instruction is a handler's
 * first one. */
const void *arch_second(const void *ucontext);
const void *arch_third(const void *ucontext);

/* The functions below want the code around the ip to be readable: arch_code_before bytes before it
 * and arch_code_after from it on. Signal-safe. */

/* A handler of the program's runs, or ran, where `ucontext` was interrupted: what a system call
 * that has just ended there says (EINTR, or less than was asked for) is for it. With `strict` it
 * has no SA_RESTART: a call that is to be made again, for the sake of our signal, is to fail. */
void arch_owe(const void *ucontext, bool strict);

/* Before our handler returns: what its signal did to a system call is undone. A wait that
 * SA_RESTART does not cover (nanosleep, poll, select, epoll_wait, semop …) is made again; a
 * blocking write to a pipe, socket or terminal that wrote less than it was asked to, which without
 * a signal does not happen, is written to its end, unless `quiet`: that blocks as the program would
 * have. What arch_owe has named stays as it is or is made to fail. */
void arch_resume(void *ucontext, int signal, bool quiet);

#define raw0(n) raw_syscall((n), 0, 0, 0, 0, 0, 0)
#define raw1(n, a) raw_syscall((n), (long)(a), 0, 0, 0, 0, 0)
#define raw2(n, a, b) raw_syscall((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define raw3(n, a, b, c) raw_syscall((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw4(n, a, b, c, d) raw_syscall((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define raw5(n, a, b, c, d, e)                                                                     \
    raw_syscall((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define raw6(n, a, b, c, d, e, f)                                                                  \
    raw_syscall((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
