/*
 * The interposed functions through which a program could meet the agent's signal. glibc hides two
 * signals of its own from programs in the same way.
 */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/real.h"
#include "agent/signals.h"

/* Signals whose handlers would have blocked ours, by number. If they did, a sample that came due in
 * one would wait for its end, and come in where a wait is about to fail with EINTR for its sake: it
 * would be taken for our doing (arch_resume). */
static uint64_t masking;

static uint64_t bit(int signal)
{
    return signal > 0 && signal <= 64 ? 1ull << (signal - 1) : 0;
}

/* The program wants our signal; its handlers that meant to block it do so from now on. */
static void cede(void)
{
    int ours = agent_settings.signal;
    uint64_t were = __atomic_exchange_n(&masking, 0, __ATOMIC_ACQ_REL);
    for (int s = 1; s <= 64; s++) {
        struct sigaction now;
        if (!(were & bit(s)) || s == ours || __sigaction(s, NULL, &now) != 0)
            continue;
        sigaddset(&now.sa_mask, ours);
        __sigaction(s, &now, NULL);
    }
    signals_cede();
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
        cede();
        return set;
    }
    *without = *set;
    sigdelset(without, agent_settings.signal);
    return without;
}

/* What is to be set in place of `act`, in *ours if it is another. *masks: it meant to block ours.
 */
static const struct sigaction *replace(int signal, const struct sigaction *act,
                                       struct sigaction *ours, bool *masks)
{
    act = signals_guarded(signal, act);
    if (!act)
        return NULL;
    sigset_t without;
    *ours = *act;
    *masks = strip(&act->sa_mask, &without) == &without;
    if (*masks)
        ours->sa_mask = without;
    interrupt_wrap(signal, ours);
    return ours;
}

/* The program's dealings with a signal that is not ours. */
static int set_other(int signal, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction ours;
    bool was = __atomic_load_n(&masking, __ATOMIC_ACQUIRE) & bit(signal), is = false;
    interrupt_handler *kept = interrupt_kept(signal);
    act = replace(signal, act, &ours, &is);
    int result = __sigaction(signal, act, old);
    if (result != 0)
        return result;
    signals_unguarded(old);
    if (old)
        interrupt_unwrap(old, kept);
    if (was && old)
        sigaddset(&old->sa_mask, agent_settings.signal);
    if (act && is)
        __atomic_fetch_or(&masking, bit(signal), __ATOMIC_ACQ_REL);
    else if (act && was && signals_is_ours(agent_settings.signal))
        __atomic_fetch_and(&masking, ~bit(signal), __ATOMIC_ACQ_REL);
    return 0;
}

EXPORT int sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
    if (!__sigaction)
        return REAL(sigaction)(signal, act, old);
    if (!signals_is_ours(signal))
        return set_other(signal, act, old);
    if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN) {
        cede();
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
    if (handler == SIG_ERR)
        return REAL(signal)(number, handler);
    if (!signals_is_ours(number)) {
        struct sigaction act = {.sa_handler = handler};
        interrupt_handler *kept = interrupt_kept(number);
        interrupt_wrap(number, &act);
        act.sa_handler = REAL(signal)(number, act.sa_handler);
        interrupt_unwrap(&act, kept);
        return act.sa_handler;
    }
    if (handler != SIG_DFL && handler != SIG_IGN) {
        cede();
        return REAL(signal)(number, handler);
    }
    struct sigaction now = {.sa_handler = handler};
    return signals_believed(&now).sa_handler;
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
