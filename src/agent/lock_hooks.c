/*
 * A program that locks its memory means its own. The agent's segments are hundreds of megabytes of
 * addresses, of which little is ever touched: locked, all of it would be there, and would count for
 * the program's limit. So mlockall locks what is mapped range by range, without ours.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/ranges.h"
#include "agent/real.h"

static void range_add(struct range r, uint64_t *sum)
{
    *sum += r.ours ? 0 : r.end - r.start;
}

/* What cannot be had of a range (the kernel's own, or one without access) is no failure. */
static void range_lock(struct range r, uint64_t *how)
{
    if (r.ours)
        raw2(SYS_munlock, r.start, r.end - r.start);
    else
        raw3(SYS_mlock2, r.start, r.end - r.start, *how);
}

/* As the kernel does it: nothing is locked unless all may be. */
static long lock_current(int flags)
{
    uint64_t sum = 0, how = flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0;
    struct rlimit limit = {0};
    if ((flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || !ranges_each(range_add, &sum))
        return raw1(SYS_mlockall, flags);
    raw4(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit);
    /* Without pages for now; it ends an earlier MCL_FUTURE as well. */
    long result = sum > limit.rlim_cur || !(flags & MCL_FUTURE)
                      ? raw1(SYS_mlockall, MCL_CURRENT | MCL_ONFAULT)
                      : 0;
    if (result == -ENOMEM && sum <= limit.rlim_cur)
        result = 0; /* for the sake of our segments */
    if (result == 0 && (flags & MCL_FUTURE))
        result = raw1(SYS_mlockall, flags & ~MCL_CURRENT);
    if (result == 0)
        ranges_each(range_lock, &how);
    return result;
}

EXPORT int mlockall(int flags)
{
    bool seen = agent_phase() == AGENT_RUNNING && !agent_quiet;
    if (seen && (flags & MCL_FUTURE))
        publish_unlocked();
    long result = seen && (flags & MCL_CURRENT) ? lock_current(flags) : raw1(SYS_mlockall, flags);
    if (result >= 0)
        return (int)result;
    errno = (int)-result;
    return -1;
}
