/* Choosing, keeping and ceding the agent's signal. */
#include "agent/signals.h"

#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/real.h"
#include "agent/registry.h"

#define KERNEL_SET 8 /* bytes of a signal set, as the kernel counts them */

static void (*our_handler)(int, siginfo_t *, void *);
/* What the program believes to be set for our signal: SIG_DFL or SIG_IGN. */
static struct sigaction believed;

struct sigaction signals_believed(const struct sigaction *now)
{
    struct sigaction was = believed;
    if (now)
        believed = *now;
    return was;
}

bool signals_begins(uint64_t ip)
{
    return our_handler && ip == (uint64_t)(uintptr_t)our_handler;
}

static bool try_signal(int signal)
{
    struct sigaction now;
    if (__sigaction(signal, NULL, &now) != 0 || now.sa_handler != SIG_DFL)
        return false;
    struct sigaction ours = {.sa_sigaction = our_handler,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (__sigaction(signal, &ours, NULL) != 0)
        return false;
    believed = now;
    __atomic_store_n(&agent_settings.signal, signal, __ATOMIC_RELEASE);
    return true;
}

static bool take_free(int below)
{
    for (int s = below; s >= SIGRTMIN; s--)
        if (try_signal(s))
            return true;
    if (!try_signal(SIGPROF))
        return false;
    agent_declare(SEGMENT_SIGNAL_PROF);
    return true;
}

bool signals_init(void (*handler)(int, siginfo_t *, void *))
{
    our_handler = handler;
    return take_free(SIGRTMAX);
}

static uint64_t bit(int signal)
{
    return 1ull << (signal - 1);
}

bool signals_unblock(void)
{
    if (!agent_settings.signal)
        return false;
    uint64_t set = bit(agent_settings.signal), old = 0;
    raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, &old, KERNEL_SET);
    return (old & set) != 0;
}

static uint32_t guarding;

static void on_overflow(int signal, siginfo_t *info, void *ucontext)
{
    (void)ucontext;
    if (info->si_code == SI_KERNEL)
        return;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    __sigaction(signal, &plain, NULL);
    raw3(SYS_tgkill, raw0(SYS_getpid), raw0(SYS_gettid), signal);
}

static const struct sigaction guard = {.sa_sigaction = on_overflow,
                                       .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

bool signals_guard(void)
{
    struct sigaction now;
    if (__atomic_load_n(&guarding, __ATOMIC_ACQUIRE))
        return true;
    if (__sigaction(SIGIO, NULL, &now) != 0 ||
        (now.sa_handler == SIG_DFL && __sigaction(SIGIO, &guard, NULL) != 0))
        return false;
    __atomic_store_n(&guarding, 1, __ATOMIC_RELEASE);
    return true;
}

const struct sigaction *signals_guarded(int signal, const struct sigaction *act)
{
    bool needed = signal == SIGIO && act && act->sa_handler == SIG_DFL &&
                  __atomic_load_n(&guarding, __ATOMIC_ACQUIRE);
    return needed ? &guard : act;
}

void signals_unguarded(struct sigaction *old)
{
    if (old && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction == on_overflow)
        *old = (struct sigaction){.sa_handler = SIG_DFL};
}

void signals_pass_on(int signal)
{
    if (believed.sa_handler == SIG_IGN)
        return;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    __sigaction(signal, &plain, NULL);
    raw3(SYS_tgkill, raw0(SYS_getpid), raw0(SYS_gettid), signal);
}

bool signals_is_ours(int signal)
{
    return signal > 0 && signal == agent_settings.signal &&
           (!agent_self.tid || agent_self.tid == (int32_t)raw0(SYS_gettid));
}

void signals_cede(void)
{
    int signal = agent_settings.signal;
    registry_disarm_all();
    struct sigaction plain = believed;
    __sigaction(signal, &plain, NULL);
    agent_declare(SEGMENT_SIGNAL_SHARED);
    if (!take_free(signal - 1)) {
        agent_settings.signal = 0;
        agent_declare(SEGMENT_NO_SIGNAL);
        return;
    }
    registry_arm_all();
}
