/* See priority.h. */
#include "capture/priority.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST (-20)
#define RESET_ON_FORK 1

/* The kernel's first version of it; C libraries have none. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static bool set(int nice, uint64_t flags)
{
    struct attributes a = {.size = sizeof a, .policy = SCHED_OTHER, .flags = flags, .nice = nice};
    return syscall(SYS_sched_setattr, 0, &a, 0) == 0;
}

bool priority_raise(void)
{
    errno = 0;
    bool usual =
        getpriority(PRIO_PROCESS, 0) == 0 && !errno && sched_getscheduler(0) == SCHED_OTHER;
    return usual && set(HIGHEST, RESET_ON_FORK);
}

void priority_restore(void)
{
    set(0, 0);
}
