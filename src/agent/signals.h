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
#include <stdint.h>

/* Takes a free signal into agent_settings.signal, its handler being `handler`. False: none. */
bool signals_init(void (*handler)(int, siginfo_t *, void *));

/* Lets the calling thread receive it; whether it was blocked before. */
bool signals_unblock(void);

/* Whether our handler begins at `ip`. Signal-safe. */
bool signals_begins(uint64_t ip);

/* Somebody else sent the agent's signal: does what the program would have done. Signal-safe. */
void signals_pass_on(int signal);

/* Whether `signal` is the agent's, in the process that is observed: vfork's child has signals of
 * its own but our memory, so what it sets is the kernel's alone. */
bool signals_is_ours(int signal);

/* The program wants it: timers go over to the next free signal, or end. */
void signals_cede(void);

/* What the program believes to be set for it, SIG_DFL or SIG_IGN; then `now`, if that is given. */
struct sigaction signals_believed(const struct sigaction *now);

/* A perf event's signal that finds no room in the user's queue comes as SIGIO, which ends a program
 * that does not care for it. Lets that pass unnoticed; false if it cannot be had. Signal-safe. */
bool signals_guard(void);
/* For the program's own dealings with SIGIO: the guard stands in for SIG_DFL. */
const struct sigaction *signals_guarded(int signal, const struct sigaction *act);
void signals_unguarded(struct sigaction *old);

#endif
