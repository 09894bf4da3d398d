/* See ranges.h. */
#include "agent/ranges.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"

#define LINE 256 /* of /proc/self/smaps: more than is looked at */

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

bool ranges_each(void (*each)(struct range r, uint64_t *context), uint64_t *context)
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
