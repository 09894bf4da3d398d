/*
 * What the agent's signal does to a system call that it interrupts is undone: the program sees no
 * EINTR of ours. Unless a handler of its own is owed it: the kernel delivers a thread's own signals
 * before those of the process, so when ours and, say, SIGALRM end a wait together, our handler lies
 * beneath the program's, and finds the EINTR when that has returned. To tell, the program's
 * handlers of signals from outside are called through here, and mark the contexts that they ran on
 * top of.
 */
#ifndef SONDE_AGENT_INTERRUPT_H
#define SONDE_AGENT_INTERRUPT_H

#include <signal.h>

/* Around all that our handler does. Signal-safe. */
void interrupt_begin(void);
void interrupt_end(void *ucontext);

typedef void interrupt_handler(int signal, siginfo_t *info, void *ucontext);

/* Puts one that calls it in the place of the program's handler, which is about to be set. */
void interrupt_wrap(int signal, struct sigaction *act);
/* The one that was wrapped last, to be asked for before the next is; then it goes back to where the
 * kernel told of ours. */
interrupt_handler *interrupt_kept(int signal);
void interrupt_unwrap(struct sigaction *old, interrupt_handler *kept);

#endif
