/*
 * perf-PID.map, in which a just-in-time compiler writes "START SIZE name", in hex, for each piece
 * of code. Code memory is reused, so of several lines that cover an address the last one holds: the
 * file is read from its end, and an address once named is skipped from then on.
 */
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "symbol/rooted.h"

#define MAP_MAX ((size_t)512 << 20)
#define STATUS_MAX ((size_t)1 << 16)

struct entry {
    uint64_t start, end;
    const char *name; /* not terminated */
    size_t len;
};

static const char *parse_hex(const char *p, const char *end, uint64_t *value)
{
    const char *from = p;
    *value = 0;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        from = p += 2;
    for (; p < end && p - from < 16; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *value = *value << 4 | ((c | 32) - 'a' + 10u);
        else
            break;
    }
    return p == from || p == end || *p != ' ' ? NULL : p + 1;
}

static bool parse_line(const char *p, const char *end, struct entry *e)
{
    uint64_t size;
    if (end > p && end[-1] == '\r')
        end--;
    p = parse_hex(p, end, &e->start);
    if (p)
        p = parse_hex(p, end, &size);
    if (!p || size == 0 || p == end)
        return false;
    e->end = size > UINT64_MAX - e->start ? UINT64_MAX : e->start + size;
    e->name = p;
    e->len = (size_t)(end - p);
    return true;
}

/* CPython's trampolines are called "py::function:/path/file.py". */
static void split_python(struct answers *a, size_t index, char *name)
{
    struct symbol_location *l = a->item[index].location;
    char *colon = strrchr(name, ':');
    if (strncmp(name, "py::", 4) != 0 || !colon || colon <= name + 4 || !colon[1])
        return;
    *colon = '\0';
    l->function = answers_keep(a, name + 4);
    l->file = answers_keep(a, colon + 1);
}

static void name_range(struct answers *a, size_t *next, const struct entry *e)
{
    char name[SYMBOL_TEXT_MAX];
    size_t len = e->len < sizeof name ? e->len : sizeof name - 1;
    bool copied = false;
    for (size_t i = answers_from(a, e->start); i < a->count && a->address[i] < e->end;) {
        size_t open = i;
        while (next[open] != open)
            open = next[open] = next[next[open]];
        i = open;
        if (i >= a->count || a->address[i] >= e->end)
            break;
        if (!copied) {
            memcpy(name, e->name, len);
            name[len] = '\0';
            copied = true;
        }
        answers_name(a, i, name, e->start);
        split_python(a, i, name);
        if (a->item[i].location && a->item[i].location->function)
            copied = false; /* the split cut the copy in two */
        next[i] = i + 1;
        i++;
    }
}

void perf_map_scan(struct answers *a, const char *data, size_t len)
{
    size_t *next = memory_array(a->count + 1, sizeof *next);
    for (size_t i = 0; i <= a->count; i++)
        next[i] = i < a->count && a->item[i].named ? i + 1 : i;
    while (len > 0 && a->open > 0) {
        const char *newline = memrchr(data, '\n', len);
        const char *line = newline ? newline + 1 : data;
        struct entry e;
        if (parse_line(line, data + len, &e))
            name_range(a, next, &e);
        len = newline ? (size_t)(newline - data) : 0;
    }
    free(next);
}

/* The process's id in its innermost container, from the NSpid line; 0 if it is not in one. */
static long inner_pid(pid_t pid)
{
    char path[64], *data;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (io_slurp(path, STATUS_MAX, &data, NULL, NULL) < 0)
        return 0;
    char *line = strstr(data, "\nNSpid:"), *last = NULL;
    long inner = 0;
    if (line) {
        line += 7;
        line[strcspn(line, "\n")] = '\0';
        last = strrchr(line, '\t');
    }
    if (last)
        inner = strtol(last + 1, NULL, 10);
    free(data);
    return inner == pid ? 0 : inner;
}

/* Anyone can write to /tmp: without privileges, only our own and root's files are believed. */
static int open_map(const char *root, const char *path)
{
    struct stat st;
    int fd = rooted_open_nofollow(root, path);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid() || geteuid() == 0))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

static int find_map(const struct module *m, char *path, size_t size)
{
    char root[64];
    pid_t pid = m->request->pid;
    if (m->request->path) {
        snprintf(path, size, "%s", m->request->path);
        return open_map(m->request->root, path);
    }
    snprintf(path, size, "/tmp/perf-%d.map", (int)pid);
    int fd = open_map(m->request->root, path);
    if (fd >= 0 || pid <= 0)
        return fd;
    snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
    long inner = inner_pid(pid);
    if (inner > 0)
        snprintf(path, size, "/tmp/perf-%ld.map", inner);
    return open_map(root, path);
}

static int perf_map_run(struct module *m, struct error *err)
{
    char path[4096];
    int fd = find_map(m, path, sizeof path);
    if (fd < 0) {
        module_set_status(m, errno == EACCES ? SYMBOL_DENIED : SYMBOL_NOT_FOUND,
                          "cannot use %s: no names for code compiled at run time", path);
        return FAULT_MISSING;
    }
    size_t len;
    char *data = rooted_slurp(fd, MAP_MAX, &len);
    int status = 0;
    if (data) {
        perf_map_scan(&m->answers, data, len);
        m->had_symtab = true;
        module_credit(m, path);
    } else {
        status = error_errno(err, FAULT_SYSTEM, "cannot read %s", path);
        module_set_status(m, SYMBOL_DAMAGED, "cannot read %s", path);
    }
    free(data);
    close(fd);
    return status;
}

const struct resolver resolver_perf_map = {"perf-map", SYMBOL_PERF_MAP, perf_map_run};
