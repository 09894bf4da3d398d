/*
 * Choosing, keeping and ceding the agent's signal, and the interposed functions through which the
 * program could meet it. glibc hides two signals of its own from programs in the same way.
 */
#include "agent/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/real.h"
#include "agent/threads.h"

#define KERNEL_SET 8 /* bytes of a signal set, as the kernel counts them */

static void (*our_handler)(int, siginfo_t *, void *);
/* What the program believes to be set for our signal: SIG_DFL or SIG_IGN. */
static struct sigaction believed;

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

void signals_unblock(void)
{
    if (!agent_settings.signal)
        return;
    uint64_t set = bit(agent_settings.signal);
    raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, KERNEL_SET);
}

void signals_pass_on(int signal, siginfo_t *info)
{
    (void)info;
    if (believed.sa_handler == SIG_IGN)
        return;
    struct sigaction plain = {.sa_handler = SIG_DFL};
    __sigaction(signal, &plain, NULL);
    raw3(SYS_tgkill, raw0(SYS_getpid), raw0(SYS_gettid), signal);
}

/* Whether `signal` is the agent's, in the process that is observed: vfork's child has signals of
 * its own but our memory, so what it sets is the kernel's alone. */
static bool is_ours(int signal)
{
    return signal > 0 && signal == agent_settings.signal &&
           (!agent_self.tid || agent_self.tid == (int32_t)raw0(SYS_gettid));
}

/* The program wants it: timers go over to the next free signal, or end. */
static void cede(void)
{
    int signal = agent_settings.signal;
    threads_disarm_all();
    struct sigaction plain = believed;
    __sigaction(signal, &plain, NULL);
    agent_declare(SEGMENT_SIGNAL_SHARED);
    if (!take_free(signal - 1)) {
        agent_settings.signal = 0;
        agent_declare(SEGMENT_NO_SIGNAL);
        return;
    }
    threads_arm_all();
}

EXPORT int sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
    if (!is_ours(signal))
        return __sigaction(signal, act, old);
    struct sigaction was = believed;
    if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN) {
        cede();
        return __sigaction(signal, act, old);
    }
    if (act)
        believed = *act;
    if (old)
        *old = was;
    return 0;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (!is_ours(number) || handler == SIG_ERR)
        return REAL(signal)(number, handler);
    sighandler_t was = believed.sa_handler;
    if (handler != SIG_DFL && handler != SIG_IGN) {
        cede();
        return REAL(signal)(number, handler);
    }
    memset(&believed, 0, sizeof believed);
    believed.sa_handler = handler;
    return was;
}

static bool holds_ours(const sigset_t *set)
{
    return set && agent_settings.signal && sigismember(set, agent_settings.signal) == 1;
}

/* A set that names our signal among few others means it; one with nearly all means "whatever". */
static bool is_meant(const sigset_t *set)
{
    int members = 0;
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        members += sigismember(set, s) == 1;
    return members < (SIGRTMAX - SIGRTMIN + 1) / 2;
}

/* The set without our signal, in *without, if it has to be kept out; else the set as it is. */
static const sigset_t *strip(const sigset_t *set, sigset_t *without)
{
    if (!holds_ours(set) || !is_ours(agent_settings.signal))
        return set;
    if (is_meant(set)) {
        cede();
        return set;
    }
    *without = *set;
    sigdelset(without, agent_settings.signal);
    return without;
}

static int change_mask(int how, const sigset_t *set, sigset_t *old)
{
    bool was = agent_self.hidden, holds = holds_ours(set);
    sigset_t without;
    const sigset_t *used = how == SIG_UNBLOCK ? set : strip(set, &without);
    int result = REAL(pthread_sigmask)(how, used, old);
    if (result != 0)
        return result;
    if (used != set)
        agent_self.hidden = true;
    else if (set && ((how == SIG_UNBLOCK && holds) || (how == SIG_SETMASK && !holds)))
        agent_self.hidden = false;
    if (old && was && agent_settings.signal)
        sigaddset(old, agent_settings.signal);
    return 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return change_mask(how, set, old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int result = change_mask(how, set, old);
    if (result == 0)
        return 0;
    errno = result;
    return -1;
}

EXPORT int sigwait(const sigset_t *set, int *number)
{
    sigset_t without;
    return REAL(sigwait)(strip(set, &without), number);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    sigset_t without;
    return REAL(sigwaitinfo)(strip(set, &without), info);
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    sigset_t without;
    return REAL(sigtimedwait)(strip(set, &without), info, timeout);
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
    sigset_t without;
    return REAL(signalfd)(fd, strip(set, &without), flags);
}
