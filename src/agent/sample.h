/* The CPU sampler's signal handler. */
#ifndef SONDE_AGENT_SAMPLE_H
#define SONDE_AGENT_SAMPLE_H

#include <signal.h>

void sample_on_signal(int signal, siginfo_t *info, void *ucontext);

#endif
