/*
 * A program that limits its address space means its own. The agent has gigabytes of addresses, of
 * which little is ever touched: counted in, nothing would be left for the program. So the kernel's
 * limit is set higher by what is ours, and told without that; what is executed next gets the one
 * that was meant, if not its upper bound.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/heap.h"
#include "agent/limit_hooks.h"
#include "agent/publish.h"
#include "agent/ranges.h"
#include "agent/real.h"

#define LATER ((uint64_t)64 << 20) /* what the agent may still map: for more threads, say */
#define DEEP 8192                  /* bytes of stack that an exec may use on its way */

/* What the program has set last, and what the kernel has in its place. Children have both. */
static struct rlimit asked, given;

static void translate(struct rlimit *limit, const struct rlimit *from, const struct rlimit *to)
{
    if (limit->rlim_cur == from->rlim_cur)
        limit->rlim_cur = to->rlim_cur;
    if (limit->rlim_max == from->rlim_max)
        limit->rlim_max = to->rlim_max;
}

static void range_add(struct range r, uint64_t *sum)
{
    *sum += r.ours ? r.end - r.start : 0;
}

/* With room for the agent in the limit that counts, and the other one not below it. */
static struct rlimit with_room(struct rlimit limit)
{
    uint64_t room = LATER;
    if (limit.rlim_cur > limit.rlim_max || limit.rlim_cur == RLIM_INFINITY)
        return limit;
    publish_segment(); /* else they come later, and are most of it */
    heap_prepare();
    if (!ranges_each(range_add, &room) || limit.rlim_cur > RLIM_INFINITY - room)
        return limit;
    limit.rlim_cur += room;
    if (limit.rlim_max < limit.rlim_cur)
        limit.rlim_max = limit.rlim_cur;
    return limit;
}

static long set(struct rlimit new, struct rlimit *old)
{
    struct rlimit raised = with_room(new), before = {0};
    long result = raw4(SYS_prlimit64, 0, RLIMIT_AS, &raised, &before);
    if (result == -EPERM) { /* as much as may be */
        raised.rlim_max = new.rlim_max;
        if (raised.rlim_cur > raised.rlim_max)
            raised.rlim_cur = raised.rlim_max;
        result = raw4(SYS_prlimit64, 0, RLIMIT_AS, &raised, &before);
    }
    if (result != 0)
        return result;
    translate(&before, &given, &asked);
    if (old)
        *old = before;
    asked = new;
    given = raised;
    return 0;
}

static long get(struct rlimit *old)
{
    long result = raw4(SYS_prlimit64, 0, RLIMIT_AS, NULL, old);
    if (result == 0 && old)
        translate(old, &given, &asked);
    return result;
}

/* Whether the limit is one of this process, by itself: vfork's child has others, but our memory. */
static bool is_ours(pid_t pid, int resource)
{
    return resource == RLIMIT_AS && agent_process && !agent_quiet &&
           (!pid || pid == (pid_t)raw0(SYS_getpid)) && agent_self.tid == (int32_t)raw0(SYS_gettid);
}

static int change(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old)
{
    long result = !is_ours(pid, resource) ? raw4(SYS_prlimit64, pid, resource, new, old)
                  : new                   ? set(*new, old)
                                          : get(old);
    if (result >= 0)
        return 0;
    errno = (int)-result;
    return -1;
}

/* The limit that counts alone: the other one could not be raised again. */
static void exchange(uint64_t from, uint64_t to)
{
    struct rlimit now;
    if (from == to || agent_quiet || raw4(SYS_prlimit64, 0, RLIMIT_AS, NULL, &now) != 0 ||
        now.rlim_cur != from)
        return;
    now.rlim_cur = to;
    raw4(SYS_prlimit64, 0, RLIMIT_AS, &now, NULL);
}

void limits_give_back(void)
{
    if (given.rlim_cur != asked.rlim_cur) /* the stack may not grow from here on */
        *(volatile char *)__builtin_alloca(DEEP) = 0;
    exchange(given.rlim_cur, asked.rlim_cur);
}

void limits_take_again(void)
{
    exchange(asked.rlim_cur, given.rlim_cur);
}

/* Two names for each call; where numbers have 64 bits always, <sys/resource.h> makes one of them.
 */
EXPORT int hook_getrlimit(int, struct rlimit *) __asm__("getrlimit");
EXPORT int hook_getrlimit64(int, struct rlimit *) __asm__("getrlimit64");
EXPORT int hook_setrlimit(int, const struct rlimit *) __asm__("setrlimit");
EXPORT int hook_setrlimit64(int, const struct rlimit *) __asm__("setrlimit64");
EXPORT int hook_prlimit(pid_t, int, const struct rlimit *, struct rlimit *) __asm__("prlimit");
EXPORT int hook_prlimit64(pid_t, int, const struct rlimit *, struct rlimit *) __asm__("prlimit64");

EXPORT int hook_getrlimit(int resource, struct rlimit *old)
{
    return change(0, resource, NULL, old);
}

EXPORT int hook_getrlimit64(int resource, struct rlimit *old)
{
    return change(0, resource, NULL, old);
}

EXPORT int hook_setrlimit(int resource, const struct rlimit *new)
{
    return change(0, resource, new, NULL);
}

EXPORT int hook_setrlimit64(int resource, const struct rlimit *new)
{
    return change(0, resource, new, NULL);
}

EXPORT int hook_prlimit(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old)
{
    return change(pid, resource, new, old);
}

EXPORT int hook_prlimit64(pid_t pid, int resource, const struct rlimit *new, struct rlimit *old)
{
    return change(pid, resource, new, old);
}
