/* Limits of a command; see resource_limits.h. */
#include "capture/resource_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define PERIOD 100000 /* µs, over which CPU time is given out */

enum { GROUP_MEMORY, GROUP_CPU };

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = io_write(fd, text, strlen(text)) == 0;
    close(fd);
    return ok;
}

static uint64_t read_number(const char *folder, const char *name, const char *key)
{
    char path[512], *text;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (io_slurp(path, 65536, &text, NULL, NULL))
        return 0;
    const char *at = *key ? strstr(text, key) : text;
    uint64_t v = at ? strtoull(at + strlen(key), NULL, 10) : 0;
    free(text);
    return v;
}

/* Where our own group is in the hierarchy of `controller` ("" is that of version 2). */
static bool own_group(const char *controller, char *out, size_t size)
{
    char *text, *rest;
    bool found = false;
    if (io_slurp("/proc/self/cgroup", 65536, &text, NULL, NULL))
        return false;
    rest = text;
    for (char *line; !found && (line = strsep(&rest, "\n"));) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        char *list = names + 1;
        for (char *one; !found && (one = strsep(&list, ","));)
            found = !strcmp(one, controller);
        if (found)
            snprintf(out, size, "%s", strcmp(path, "/") ? path : "");
    }
    free(text);
    return found;
}

/* A new group below ours in which `file` exists, or false. */
static bool make_group(const char *root, const char *controller, const char *file, char out[256])
{
    char own[128], path[512];
    struct stat st;
    if (!own_group(controller, own, sizeof own))
        return false;
    int len = snprintf(out, 256, "%.60s%.120s/sonde-%d", root, own, getpid());
    if (len < 0 || len >= 256 || (mkdir(out, 0755) < 0 && errno != EEXIST)) {
        out[0] = 0;
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", out, file);
    if (stat(path, &st) == 0)
        return true;
    rmdir(out);
    out[0] = 0;
    return false;
}

static void limit_memory(struct limits *l, struct text *told)
{
    char number[32];
    char *group = l->groups[GROUP_MEMORY];
    snprintf(number, sizeof number, "%llu", (unsigned long long)l->memory);
    if (make_group("/sys/fs/cgroup", "", "memory.max", group) &&
        write_file(group, "memory.max", number)) {
        text_add(told, "by a control group (version 2), for all processes together");
        return;
    }
    if (*group)
        rmdir(group);
    if (make_group("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", group) &&
        write_file(group, "memory.limit_in_bytes", number)) {
        write_file(group, "memory.memsw.limit_in_bytes", number); /* not every kernel counts swap */
        text_add(told, "by a control group (version 1), for all processes together");
        return;
    }
    if (*group)
        rmdir(group);
    *group = 0;
    l->own_memory = true;
    text_add(told, "by RLIMIT_AS, for each process by itself: address space, not memory in use (no "
                   "control group can be made here)");
}

static bool limit_cpu(struct limits *l, struct text *told)
{
    char text[64];
    char *group = l->groups[GROUP_CPU];
    uint64_t quota = (uint64_t)(l->cpus * PERIOD);
    snprintf(text, sizeof text, "%llu %d", (unsigned long long)quota, PERIOD);
    if (make_group("/sys/fs/cgroup", "", "cpu.max", group) && write_file(group, "cpu.max", text)) {
        text_add(told, "by a control group (version 2)");
        return true;
    }
    if (*group)
        rmdir(group);
    snprintf(text, sizeof text, "%llu", (unsigned long long)quota);
    if (make_group("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", group) &&
        write_file(group, "cpu.cfs_period_us", "100000") &&
        write_file(group, "cpu.cfs_quota_us", text)) {
        text_add(told, "by a control group (version 1)");
        return true;
    }
    if (*group)
        rmdir(group);
    *group = 0;
    return false;
}

int limits_prepare(struct limits *l, struct error *err)
{
    struct text *told = &l->told;
    text_init(told);
    if (l->memory) {
        text_add(told, "memory was limited to ");
        text_add_bytes(told, l->memory);
        text_add_char(told, ' ');
        limit_memory(l, told);
        text_add_char(told, '\n');
    }
    if (l->cpus > 0) {
        struct text how = TEXT_INIT;
        bool done = limit_cpu(l, &how);
        if (done)
            text_format(told, "CPU time was limited to %g CPUs %s\n", l->cpus, how.data);
        text_release(&how);
        if (!done)
            return error_set(err, FAULT_SYSTEM,
                             "--cpu-limit needs a control group, and this user cannot make one "
                             "here: run as root, or use --cpus to bind it to some CPUs");
    }
    if (l->bound_to)
        text_format(told, "the command was bound to CPUs %s\n", l->bound_to);
    if (l->nice_given)
        text_format(told, "the command ran with nice %d\n", l->nice);
    return 0;
}

int limits_apply(const struct limits *l, pid_t pid, struct error *err)
{
    char number[24];
    snprintf(number, sizeof number, "%d", pid);
    for (int i = 0; i < 2; i++)
        if (*l->groups[i] && !write_file(l->groups[i], "cgroup.procs", number))
            return error_errno(err, FAULT_SYSTEM, "cannot put the command into %s", l->groups[i]);
    struct rlimit r = {.rlim_cur = l->memory, .rlim_max = l->memory};
    if (l->own_memory && prlimit(pid, RLIMIT_AS, &r, NULL) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot limit the command's memory");
    if (l->nice_given && setpriority(PRIO_PROCESS, (id_t)pid, l->nice) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot give the command nice %d", l->nice);
    return 0;
}

static void remove_group(const char *group)
{
    /* Processes that are still ending keep it for a moment. */
    for (int i = 0; i < 50 && rmdir(group) < 0 && errno == EBUSY; i++)
        usleep(10000);
}

void limits_finish(struct limits *l)
{
    struct text *told = &l->told;
    char *memory = l->groups[GROUP_MEMORY], *cpu = l->groups[GROUP_CPU];
    if (*memory) {
        uint64_t met = read_number(memory, "memory.events", "\nmax ");
        uint64_t killed = read_number(memory, "memory.events", "\noom_kill ");
        met += read_number(memory, "memory.failcnt", "");
        met += read_number(memory, "memory.memsw.failcnt", "");
        killed += read_number(memory, "memory.oom_control", "oom_kill ");
        if (met || killed)
            text_format(told,
                        "the memory limit was met %llu times; %llu processes were killed for it\n",
                        (unsigned long long)met, (unsigned long long)killed);
        remove_group(memory);
        *memory = 0;
    }
    if (*cpu) {
        uint64_t times = read_number(cpu, "cpu.stat", "nr_throttled ");
        if (times)
            text_format(told, "the CPU limit held the command back in %llu periods of 0.1 s\n",
                        (unsigned long long)times);
        remove_group(cpu);
        *cpu = 0;
    }
}

void limits_release(struct limits *l)
{
    limits_finish(l);
    text_release(&l->told);
}
