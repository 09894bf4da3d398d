/*
 * The agent's signal: a real-time one that the program does not use, the highest free. The program
 * is not to notice it. What it does with this signal by sigaction, signal, masks or sigwait is
 * answered as if it had its default; once the program wants it for itself, it gets it and the
 * agent moves to another, which is declared.
 */
#ifndef SONDE_AGENT_SIGNALS_H
#define SONDE_AGENT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Takes a free signal into agent_settings.signal, its handler being `handler`. False: none. */
bool signals_init(void (*handler)(int, siginfo_t *, void *));
/* Lets the calling thread receive it. */
void signals_unblock(void);

/* Somebody else sent the agent's signal: does what the program would have done. Signal-safe. */
void signals_pass_on(int signal, siginfo_t *info);

#endif
