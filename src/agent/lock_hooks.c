/*
 * A program that locks its memory means its own. The agent's segments are hundreds of megabytes of
 * addresses, of which little is ever touched: locked, all of it would be there, and would count for
 * the program's limit. So mlockall locks what is mapped range by range, without ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/real.h"

#define LINE 256 /* of /proc/self/smaps: more than is looked at */

struct range {
    uint64_t start, end;
    bool ours;
};

/* The agent's own tables, of the linker: hidden, since programs have such names, too. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

static const char *hex(const char *text, uint64_t *value)
{
    for (*value = 0;; text++) {
        char c = *text;
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return text;
    }
}

/* A line that begins a range, or its last, which has flags: "dd" is not dumped, "dc" not given to a
 * child, "wf" wiped there. publish.h maps ours so. Whether the range is whole. */
static bool range_read(struct range *r, const char *line)
{
    static const char flags[] = "VmFlags:";
    uint64_t start;
    const char *at = hex(line, &start);
    if (at > line && *at == '-') {
        r->start = start;
        hex(at + 1, &r->end);
    }
    if (strncmp(line, flags, sizeof flags - 1) != 0)
        return false;
    r->ours =
        (strstr(line, " dd") && (strstr(line, " dc") || strstr(line, " wf"))) ||
        (r->start >= (uint64_t)(uintptr_t)__bss_start && r->start < (uint64_t)(uintptr_t)_end) ||
        r->start == (uint64_t)(uintptr_t)agent_pack;
    return true;
}

/* False if there is no telling what is mapped. */
static bool each_range(void (*each)(struct range r, uint64_t *context), uint64_t *context)
{
    char text[4096], line[LINE];
    size_t len = 0;
    struct range range = {0};
    long got, fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/smaps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    while ((got = raw3(SYS_read, fd, text, sizeof text)) > 0)
        for (long i = 0; i < got; i++) {
            if (text[i] != '\n' && len < sizeof line - 1)
                line[len++] = text[i];
            if (text[i] != '\n')
                continue;
            line[len] = 0;
            len = 0;
            if (range_read(&range, line))
                each(range, context);
        }
    raw1(SYS_close, fd);
    return got == 0;
}

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
    if ((flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) || !each_range(range_add, &sum))
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
        each_range(range_lock, &how);
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
