/* CPUs, memory, pressure, disks and networks; see machine.h. */
#include "monitor/machine.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define SECTOR 512

enum { USER, NICE, SYSTEM, IDLE, WAIT, IRQ, SOFTIRQ, STEAL };

static char *slurp(const char *path)
{
    char *text;
    return io_slurp(path, 4 << 20, &text, NULL, NULL) ? NULL : text;
}

void machine_init(struct watch *w)
{
    w->machine.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static void read_cpus(struct watch *w, double *passed)
{
    char *text = slurp("/proc/stat");
    struct watch_machine *m = &w->machine;
    uint64_t now[8] = {0}, sum = 0;
    char *at = text ? text + 3 : NULL;
    for (size_t i = 0; at && i < 8; i++)
        now[i] = strtoull(at, &at, 10);
    double part[8] = {0};
    for (size_t i = 0; i < 8; i++)
        sum += now[i] - w->last.cpu[i];
    for (size_t i = 0; i < 8 && sum && w->last.cpu[IDLE]; i++)
        part[i] = (double)(now[i] - w->last.cpu[i]) / (double)sum * m->cpus;
    bool first = !w->last.cpu[IDLE];
    m->user = part[USER] + part[NICE];
    m->system = part[SYSTEM] + part[IRQ] + part[SOFTIRQ];
    m->wait = part[WAIT];
    m->steal = part[STEAL];
    m->idle = first ? m->cpus : part[IDLE] + part[WAIT];
    *passed = first ? 0 : (double)sum / (double)sysconf(_SC_CLK_TCK) / m->cpus;
    memcpy(w->last.cpu, now, sizeof now);
    free(text);
}

static uint64_t kilobytes(const char *text, const char *key)
{
    const char *at = text ? strstr(text, key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

static void read_memory(struct watch_machine *m)
{
    char *text = slurp("/proc/meminfo");
    m->memory = kilobytes(text, "MemTotal:");
    m->free = kilobytes(text, "MemFree:");
    m->available = kilobytes(text, "MemAvailable:");
    m->cached = kilobytes(text, "\nCached:");
    m->swap = kilobytes(text, "SwapTotal:");
    m->swap_free = kilobytes(text, "SwapFree:");
    free(text);
}

static void read_pressure(struct watch_machine *m)
{
    static const char *const files[] = {"/proc/pressure/cpu", "/proc/pressure/memory",
                                        "/proc/pressure/io"};
    m->pressure_known = true;
    for (size_t i = 0; i < 3; i++) {
        char *text = slurp(files[i]);
        const char *at = text ? strstr(text, "avg10=") : NULL;
        m->pressure_known &= at != NULL;
        m->pressure[i] = at ? strtod(at + 6, NULL) : 0;
        free(text);
    }
}

/* Whole disks only: a partition's share is in its disk's. */
static bool is_disk(const char *name)
{
    struct text path = TEXT_INIT;
    text_format(&path, "/sys/block/%s", name);
    bool whole = access(path.data, F_OK) == 0 && !text_starts(name, "loop") &&
                 !text_starts(name, "ram") && !text_starts(name, "dm-");
    text_release(&path);
    return whole;
}

static void read_disks(struct watch_counts *c)
{
    char *text = slurp("/proc/diskstats"), *rest = NULL;
    c->disk_read = c->disk_written = 0;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *at = line, *word[10], *left = NULL;
        size_t n = 0;
        for (char *s = strtok_r(at, " ", &left); s && n < 10; s = strtok_r(NULL, " ", &left))
            word[n++] = s;
        if (n < 10 || strlen(word[2]) > 64 || !is_disk(word[2]))
            continue;
        c->disk_read += strtoull(word[5], NULL, 10) * SECTOR;
        c->disk_written += strtoull(word[9], NULL, 10) * SECTOR;
    }
    free(text);
}

static void read_networks(struct watch_counts *c)
{
    char *text = slurp("/proc/net/dev"), *rest = NULL;
    c->net_in = c->net_out = 0;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *at = strchr(line, ':');
        while (*line == ' ')
            line++;
        if (!at || text_starts(line, "lo:"))
            continue;
        at++;
        for (size_t i = 0; i < 9; i++) {
            uint64_t v = strtoull(at, &at, 10);
            c->net_in += i == 0 ? v : 0;
            c->net_out += i == 8 ? v : 0;
        }
    }
    free(text);
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return seconds > 0 && now >= before ? (double)(now - before) / seconds : 0;
}

void machine_look(struct watch *w)
{
    struct watch_machine *m = &w->machine;
    struct watch_counts before = w->last;
    double seconds;
    read_cpus(w, &seconds);
    read_memory(m);
    read_pressure(m);
    read_disks(&w->last);
    read_networks(&w->last);
    m->disk_read = rate(w->last.disk_read, before.disk_read, seconds);
    m->disk_written = rate(w->last.disk_written, before.disk_written, seconds);
    m->net_in = rate(w->last.net_in, before.net_in, seconds);
    m->net_out = rate(w->last.net_out, before.net_out, seconds);
    char *text = slurp("/proc/loadavg"), *at = text;
    for (size_t i = 0; i < 3 && at; i++)
        m->load[i] = strtod(at, &at);
    free(text);
    text = slurp("/proc/uptime");
    m->up = text ? (uint64_t)(strtod(text, NULL) * 1e9) : 0;
    free(text);
}

void machine_mounts(struct watch_mounts *m)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    struct mntent entry;
    char words[4096];
    while (f && getmntent_r(f, &entry, words, sizeof words)) {
        struct statvfs s;
        bool known = false;
        for (size_t i = 0; i < m->list.len; i++)
            known |= !strcmp(m->list.data[i].device, entry.mnt_fsname);
        bool shown = entry.mnt_fsname[0] == '/' || !strcmp(entry.mnt_type, "tmpfs");
        known &= entry.mnt_fsname[0] == '/'; /* bound to a second place */
        if (!shown || known || statvfs(entry.mnt_dir, &s) < 0 || !s.f_blocks)
            continue;
        *vector_push(&m->list) = (struct watch_mount){
            .device = memory_strdup(entry.mnt_fsname),
            .path = memory_strdup(entry.mnt_dir),
            .type = memory_strdup(entry.mnt_type),
            .size = (uint64_t)s.f_blocks * s.f_frsize,
            .used = (uint64_t)(s.f_blocks - s.f_bfree) * s.f_frsize,
            .available = (uint64_t)s.f_bavail * s.f_frsize,
        };
    }
    if (f)
        endmntent(f);
}

void machine_mounts_release(struct watch_mounts *m)
{
    for (size_t i = 0; i < m->list.len; i++) {
        free(m->list.data[i].device);
        free(m->list.data[i].path);
        free(m->list.data[i].type);
    }
    vector_release(&m->list);
}
