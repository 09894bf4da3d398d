/* See interrupt.h. */
#include "agent/interrupt.h"

#include <stdint.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/real.h"
#include "agent/sample.h"
#include "agent/signals.h"

#define SIGNALS 65

/* The program's own, by signal. An entry that is no longer set stays: it may be about to run. */
static interrupt_handler *own[SIGNALS];

/* In agent_self.handled: our handler runs; one of the program's ran within; one without SA_RESTART.
 */
enum { INSIDE = 1, SEEN = 2, STRICT = 4 };

/* Whether arch_owe and arch_resume may look at the code around the ip. */
static bool is_readable(const void *ucontext)
{
    struct unwind_module code;
    uint64_t ip = arch_ip(ucontext);
    return unwind_map_find(&agent_map, ip, &code) && ip - code.start >= arch_code_before &&
           code.end - ip >= arch_code_after;
}

static void owe(const void *ucontext, bool strict)
{
    if (is_readable(ucontext))
        arch_owe(ucontext, strict);
}

/* SA_RESETHAND takes away the handler, but not the flags. */
static bool is_strict(int signal)
{
    struct sigaction now;
    return !agent_quiet && __sigaction(signal, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART);
}

/* The kernel has called our handler, and before its first instruction the program's. */
static __attribute__((noinline)) void relay_first(int signal, siginfo_t *info, void *ucontext)
{
    const siginfo_t *ours = arch_second(ucontext);
    owe(arch_third(ucontext), is_strict(signal));
    sample_await(ours);
    __atomic_load_n(&own[signal], __ATOMIC_ACQUIRE)(signal, info, ucontext);
    sample_comes(ours);
}

/* Leaves by a jump: the handler's caller is the kernel. */
static void relay(int signal, siginfo_t *info, void *ucontext)
{
    if (agent_self.handled)
        agent_self.handled |= is_strict(signal) ? SEEN | STRICT : SEEN;
    if (signals_begins(arch_ip(ucontext))) {
        relay_first(signal, info, ucontext);
        return;
    }
    owe(ucontext, false);
    __atomic_load_n(&own[signal], __ATOMIC_ACQUIRE)(signal, info, ucontext);
}

/* What the code at the ip has done itself ends no wait; its handlers may well look at the stack. */
static bool is_from_outside(int signal)
{
    switch (signal) {
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGSYS:
        return false;
    default:
        return signal > 0 && signal < SIGNALS;
    }
}

void interrupt_wrap(int signal, struct sigaction *act)
{
    if (act->sa_handler == SIG_DFL || act->sa_handler == SIG_IGN || act->sa_sigaction == relay ||
        !is_from_outside(signal) || agent_quiet || !signals_is_ours(agent_settings.signal))
        return;
    __atomic_store_n(&own[signal], act->sa_sigaction, __ATOMIC_RELEASE);
    act->sa_sigaction = relay;
}

interrupt_handler *interrupt_kept(int signal)
{
    return signal > 0 && signal < SIGNALS ? own[signal] : NULL;
}

void interrupt_unwrap(struct sigaction *old, interrupt_handler *kept)
{
    if (old->sa_sigaction == relay)
        old->sa_sigaction = kept;
}

void interrupt_begin(void)
{
    agent_self.handled = INSIDE;
}

void interrupt_end(void *ucontext)
{
    uint8_t handled = agent_self.handled;
    agent_self.handled = 0;
    if (agent_settings.signal != SIGRTMAX || !is_readable(ucontext))
        return;
    if (handled & SEEN)
        arch_owe(ucontext, handled & STRICT);
    arch_resume(ucontext, SIGRTMAX, agent_quiet);
}
