/*
 * The interposed functions through which a program could meet the agent's signal. glibc hides two
 * signals of its own from programs in the same way.
 */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "agent/agent.h"
#include "agent/real.h"
#include "agent/signals.h"

EXPORT int sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
    if (!__sigaction)
        return REAL(sigaction)(signal, act, old);
    if (!signals_is_ours(signal)) {
        int result = __sigaction(signal, signals_guarded(signal, act), old);
        signals_unguarded(result == 0 ? old : NULL);
        return result;
    }
    if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN) {
        signals_cede();
        return __sigaction(signal, act, old);
    }
    struct sigaction was = signals_believed(act);
    if (old)
        *old = was;
    return 0;
}

EXPORT sighandler_t hook_signal(int, sighandler_t) __asm__("signal");

EXPORT sighandler_t hook_signal(int number, sighandler_t handler)
{
    if (number == SIGIO && handler != SIG_ERR) {
        struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
        return sigaction(number, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
    }
    if (!signals_is_ours(number) || handler == SIG_ERR)
        return REAL(signal)(number, handler);
    if (handler != SIG_DFL && handler != SIG_IGN) {
        signals_cede();
        return REAL(signal)(number, handler);
    }
    struct sigaction now = {.sa_handler = handler};
    return signals_believed(&now).sa_handler;
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
    if (!holds_ours(set) || !signals_is_ours(agent_settings.signal))
        return set;
    if (is_meant(set)) {
        signals_cede();
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
