/* The CPU sampler's signal handler. */
#ifndef SONDE_AGENT_SAMPLE_H
#define SONDE_AGENT_SAMPLE_H

#include <signal.h>

void sample_on_signal(int signal, siginfo_t *info, void *ucontext);

/* Around a handler that runs before the first instruction of ours, which has been called with
 * `info`: if it leaves by a jump, the sample is lost. Signal-safe. */
void sample_await(const siginfo_t *info);
void sample_comes(const siginfo_t *info);

#endif
