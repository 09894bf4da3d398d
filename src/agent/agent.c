/* The state of agent.h. */
#include "agent/agent.h"

#include <time.h>

struct agent_settings agent_settings;
struct agent_process *agent_process;
uint32_t agent_quiet;
__thread struct agent_self agent_self;

uint64_t agent_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void agent_declare(uint32_t flag)
{
    if (!agent_process)
        return;
    uint32_t *flags =
        agent_phase() == AGENT_RUNNING ? &agent_process->segment->flags : &agent_process->flags;
    if (!(__atomic_load_n(flags, __ATOMIC_RELAXED) & flag))
        __atomic_fetch_or(flags, flag, __ATOMIC_RELAXED);
}
