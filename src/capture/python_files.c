/* See python_files.h. */
#include "capture/python_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc.h"

bool python_files_is_one(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

static void look_at(void *context, const struct proc_mapping *m)
{
    bool *likely = context;
    *likely |= m->path[0] == '/' && python_files_is_one(m->path);
}

bool python_files_likely(pid_t pid)
{
    bool likely = false;
    proc_each_mapping(pid, look_at, &likely, NULL);
    return likely;
}

struct found {
    struct modules *all;
    pid_t pid;
    bool build_ids;
    struct space *space; /* or NULL */
};

static int read_build_id(pid_t pid, const struct proc_mapping *m, uint8_t *id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)m->start,
             (unsigned long long)m->end);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int n = fd < 0 ? 0 : rows_read_build_id(fd, id);
    if (fd >= 0)
        close(fd);
    return n;
}

static void add_mapping(void *context, const struct proc_mapping *m)
{
    struct found *f = context;
    uint8_t id[ROWS_BUILD_ID_MAX];
    if (m->path[0] != '/' || !python_files_is_one(m->path))
        return;
    int n = f->build_ids ? read_build_id(f->pid, m, id) : 0;
    struct module *module =
        modules_find(f->all, f->pid, m->path, m->start, m->end, id, n > 0 ? (size_t)n : 0);
    struct space_mapping mapping = {.start = m->start,
                                    .end = m->end,
                                    .bias = module_bias(module, m->start, m->offset),
                                    .module = module};
    f->space = f->space ? f->space : space_new();
    space_map(f->space, &mapping, NULL);
}

struct space *python_files_mapped(struct modules *all, pid_t pid, bool build_ids)
{
    char exe[PATH_MAX];
    struct found f = {.all = all, .pid = pid, .build_ids = build_ids};
    if (proc_exe(pid, exe, sizeof exe) && python_files_is_one(exe))
        proc_each_mapping(pid, add_mapping, &f, NULL);
    return f.space;
}
