/*
 * A child starts from the wiped pages: it arms a timer for its one thread and waits. The segment is
 * made when the first sample comes, so a child that goes on to exec has cost three system calls.
 */
#include "agent/fork.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/real.h"
#include "agent/threads.h"

extern void *__dso_handle; /* the library that the handler belongs to */

static void take_up(void)
{
    struct agent_process *p = agent_process;
    agent_self.thread = NULL;
    if (agent_quiet)
        return; /* the filter came along: stay as we are */
    /* Every page touched here is one more to copy for each fork: not even the clock is read. */
    p->pid = (int32_t)raw0(SYS_getpid);
    __atomic_store_n(&p->phase, agent_settings.single ? AGENT_OFF : AGENT_WAITING,
                     __ATOMIC_RELEASE);
    threads_adopt_self(agent_self.stack_low, agent_self.stack_end);
}

static void in_child(void)
{
    if (agent_settings.active)
        take_up();
}

bool fork_init(void)
{
    return __register_atfork(NULL, NULL, in_child, __dso_handle) == 0;
}

void fork_notice(void)
{
    if (agent_settings.active && agent_phase() == AGENT_ABSENT && !agent_process->pid)
        take_up();
}
