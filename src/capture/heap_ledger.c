/*
 * What is resident, and of what kind: curves beside those of the heap. /proc/PID/status costs the
 * kernel nothing; the proportional share (PSS) makes it walk all page tables, so the larger a
 * process is, the rarer it is asked for.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/heap_internal.h"

#define PSS_INTERVAL (100 * 1000000ull)
#define PSS_SHARE 50 /* asking takes at most that part of the time */

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

static void pss_add(struct heaps *h, struct heap_image *m, uint64_t now)
{
    char text[4096];
    int64_t bytes;
    if (now < m->ledger.next_pss)
        return;
    uint64_t begin = clock_now();
    bool known = file_read("/proc/%d/smaps_rollup", m->pid, text, sizeof text);
    uint64_t wait = (clock_now() - begin) * PSS_SHARE;
    m->ledger.next_pss = now + (wait > PSS_INTERVAL ? wait : PSS_INTERVAL);
    if (known && field(text, "\nPss:", &bytes))
        heap_curve_add(h, &m->ledger.pss, "pss", m, now, bytes);
}

void heap_ledger_tick(struct heaps *h, struct heap_image *m, uint64_t now)
{
    char text[8192];
    int64_t bytes;
    if (!file_read("/proc/%d/status", m->pid, text, sizeof text))
        return;
    if (field(text, "\nRssAnon:", &bytes))
        heap_curve_add(h, &m->ledger.anonymous, "rss:anonymous", m, now, bytes);
    if (field(text, "\nRssFile:", &bytes))
        heap_curve_add(h, &m->ledger.file, "rss:file", m, now, bytes);
    if (field(text, "\nRssShmem:", &bytes))
        heap_curve_add(h, &m->ledger.shared, "rss:shared", m, now, bytes);
    pss_add(h, m, now);
}
