/*
 * What is resident, and of what kind: curves beside those of the heap. /proc/PID/status costs the
 * kernel nothing; the proportional share (PSS) makes it walk all page tables, with the map of the
 * process locked: whoever wants memory from the kernel then waits, and long if the walk is
 * preempted. So it is asked for where there is news, and rarely: the larger and the more processes
 * are, the rarer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/heap_internal.h"

#define PSS_INTERVAL (100 * 1000000ull)
#define PSS_REST (2000 * 1000000ull) /* so long where nothing has changed */
#define PSS_CHANGE 32                /* less than that part of what is resident is no change */
#define PSS_SHARE 100 /* asking takes at most that part of the time, of all processes */

static bool file_read(const char *format, pid_t pid, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, format, pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* "\nPss:   123 kB", in bytes. */
static bool field(const char *text, const char *name, int64_t *bytes)
{
    const char *at = strstr(text, name);
    if (!at)
        return false;
    *bytes = strtoll(at + strlen(name), NULL, 10) * 1024;
    return true;
}

static bool pss_is_due(const struct heap_ledger *l, int64_t resident, uint64_t now)
{
    int64_t change = llabs(resident - l->asked_resident);
    return now >= l->next_pss && (change > resident / PSS_CHANGE || now - l->asked >= PSS_REST);
}

static void pss_add(struct heaps *h, struct heap_image *m, int64_t resident, uint64_t now)
{
    char text[4096];
    int64_t bytes;
    struct heap_ledger *l = &m->ledger;
    if (!pss_is_due(l, resident, now))
        return;
    uint64_t begin = clock_now();
    bool known = file_read("/proc/%d/smaps_rollup", m->pid, text, sizeof text);
    uint64_t wait = (clock_now() - begin) * PSS_SHARE * h->images.len;
    l->next_pss = now + (wait > PSS_INTERVAL ? wait : PSS_INTERVAL);
    l->asked = now;
    l->asked_resident = resident;
    if (known && field(text, "\nPss:", &bytes))
        heap_curve_add(h, &l->pss, "pss", m, now, bytes);
}

void heap_ledger_tick(struct heaps *h, struct heap_image *m, uint64_t now)
{
    char text[8192];
    int64_t anonymous = 0, file = 0, shared = 0;
    if (!file_read("/proc/%d/status", m->pid, text, sizeof text))
        return;
    if (field(text, "\nRssAnon:", &anonymous))
        heap_curve_add(h, &m->ledger.anonymous, "rss:anonymous", m, now, anonymous);
    if (field(text, "\nRssFile:", &file))
        heap_curve_add(h, &m->ledger.file, "rss:file", m, now, file);
    if (field(text, "\nRssShmem:", &shared))
        heap_curve_add(h, &m->ledger.shared, "rss:shared", m, now, shared);
    pss_add(h, m, anonymous + file + shared, now);
}
