/* Segments beside the agent's own; see offer.h. */
#include "agent/offer.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/fork.h"
#include "agent/publish.h"
#include "agent/session.h"

#define TRIES_MAX 64

static int make_after_own(int (*make)(void))
{
    fork_notice();
    if (agent_quiet)
        return -EPERM;
    if (agent_phase() == AGENT_WAITING)
        publish_segment();
    uint32_t phase = agent_phase();
    if (phase != AGENT_RUNNING)
        return phase == AGENT_OFF || phase == AGENT_ABSENT ? -ECONNREFUSED : -EAGAIN;
    return make();
}

uint32_t offer_phase(struct offer *o, int (*make)(void), enum session_reason reason)
{
    uint32_t phase = AGENT_ABSENT;
    if (__atomic_load_n(&o->phase, __ATOMIC_ACQUIRE) != AGENT_ABSENT ||
        !__atomic_compare_exchange_n(&o->phase, &phase, AGENT_MAKING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return __atomic_load_n(&o->phase, __ATOMIC_ACQUIRE);
    int result = make_after_own(make);
    phase = result == 0                                   ? AGENT_RUNNING
            : result == -EAGAIN && ++o->tries < TRIES_MAX ? AGENT_ABSENT
                                                          : AGENT_OFF;
    if (phase == AGENT_OFF && result != -ECONNREFUSED && !agent_quiet)
        session_send(SESSION_REFUSED, reason, -result, -1);
    __atomic_store_n(&o->phase, phase, __ATOMIC_RELEASE);
    return phase;
}

int offer_make(enum session_kind kind, uint64_t size, void (*fill)(void *at, const void *context),
               const void *context, void **out)
{
    int fd = publish_memory_file(size);
    if (fd < 0)
        return fd == -EAGAIN ? -ENOMEM : fd;
    *out = publish_map_file(fd, size);
    int result = *out ? 0 : -ENOMEM;
    if (*out) {
        fill(*out, context);
        result = session_send(kind, SESSION_NO_REASON, 0, fd);
    }
    raw1(SYS_close, fd);
    if (*out && result < 0)
        raw2(SYS_munmap, *out, size);
    return result;
}
