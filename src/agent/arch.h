/*
 * What the agent must know about a processor besides unwinding: how to call the kernel without
 * libc (no errno, no cancellation, nothing that a handler may not do), where a thread's control
 * block lies, and how to repeat a system call that the agent's own signal cut short.
 *
 * An arch_<name>.h defines
 *   raw_syscall(number, a … f)  the kernel's answer: a value or a negative errno
 *   arch_thread_pointer()       the address of the thread's control block
 *   arch_ticks()                a counter that runs evenly, if the collector said that it does
 *   arch_line_look(...)         of eight words in a cache line: a bit for each whose low half,
 * under a mask, is `key`, and one for each whose high half is 0 (*empty) arch_code_before how many
 * bytes before the ip arch_restart looks at arch_restart(ucontext)      see below
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

/* If the interrupted code is about to see EINTR from a wait that SA_RESTART does not cover
 * (nanosleep, poll, select, epoll_wait, semop …), lets it make the same call again. Only for a
 * handler whose `signal` has the highest number of those pending, and is blocked in no other
 * handler: the kernel delivers in ascending order, so then no other one is owed the EINTR. The
 * arch_code_before bytes before the ip must be readable. Signal-safe. */
bool arch_restart(void *ucontext, int signal);

/* If the interrupted code is about to see that a blocking write to a pipe, socket or terminal wrote
 * less than it was asked to, which without a signal does not happen, writes the rest. Blocks as the
 * program would have; conditions as above. Signal-safe. */
void arch_complete(void *ucontext);

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
