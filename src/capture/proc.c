/* Reading /proc; see proc.h. */
#include "capture/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"

#define PROC_FILE_MAX ((size_t)64 << 20)

static char *slurp(size_t *len, const char *format, int a, int b)
{
    char path[64], *text;
    snprintf(path, sizeof path, format, a, b);
    return io_slurp(path, PROC_FILE_MAX, &text, len, NULL) ? NULL : text;
}

bool proc_comm(pid_t pid, pid_t tid, char *out, size_t size)
{
    char *text = slurp(NULL, "/proc/%d/task/%d/comm", pid, tid);
    if (!text)
        return false;
    text[strcspn(text, "\n")] = 0;
    snprintf(out, size, "%s", text);
    free(text);
    return true;
}

bool proc_exe(pid_t pid, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t n = readlink(path, out, size - 1);
    if (n < 0)
        return false;
    out[n] = 0;
    return true;
}

bool proc_arguments(pid_t pid, char *out, size_t size)
{
    size_t len;
    char *text = slurp(&len, "/proc/%d/cmdline", pid, 0);
    if (!text)
        return false;
    while (len && !text[len - 1])
        len--;
    if (len >= size)
        len = size - 1;
    for (size_t i = 0; i < len; i++)
        out[i] = text[i] ? text[i] : ' ';
    out[len] = 0;
    free(text);
    return len > 0;
}

uint64_t proc_thread_cpu(pid_t pid, pid_t tid)
{
    char *text = slurp(NULL, "/proc/%d/task/%d/schedstat", pid, tid);
    if (!text)
        return 0;
    uint64_t ns = strtoull(text, NULL, 10);
    free(text);
    return ns;
}

/* The number behind "key:" in /proc/PID/status. */
static uint64_t status_number(pid_t pid, const char *key)
{
    char *text = slurp(NULL, "/proc/%d/status", pid, 0);
    if (!text)
        return 0;
    const char *at = strstr(text, key);
    uint64_t v = at ? strtoull(at + strlen(key), NULL, 10) : 0;
    free(text);
    return v;
}

uint64_t proc_peak_rss(pid_t pid)
{
    return status_number(pid, "\nVmHWM:") * 1024;
}

uint64_t proc_rss(pid_t pid)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *resident = strchr(text, ' ');
    return resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

pid_t proc_tracer(pid_t pid)
{
    return (pid_t)status_number(pid, "\nTracerPid:");
}

pid_t proc_innermost(pid_t pid, pid_t tid)
{
    char *text = slurp(NULL, "/proc/%d/task/%d/status", pid, tid);
    const char *at = text ? strstr(text, "\nNSpid:") : NULL;
    pid_t last = 0;
    for (at = at ? at + 7 : NULL; at && *at == '\t';) {
        char *end;
        last = (pid_t)strtol(at, &end, 10);
        at = end;
    }
    free(text);
    return last;
}

static void each_number(const char *folder, struct pids *out)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char *end;
        long n = strtol(e->d_name, &end, 10);
        if (!*end && n > 0)
            *vector_push(out) = (pid_t)n;
    }
    closedir(d);
}

void proc_threads(pid_t pid, struct pids *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    each_number(path, out);
}

/* State and parent stand behind the last ')' of /proc/PID/stat: the name may hold anything. */
static bool read_stat(pid_t pid, char *state, pid_t *parent)
{
    char *text = slurp(NULL, "/proc/%d/stat", pid, 0);
    const char *close = text ? strrchr(text, ')') : NULL; /* ") S 1234 ..." */
    bool ok = close && strlen(close) > 4;
    if (ok) {
        *state = close[2];
        *parent = (pid_t)strtol(close + 4, NULL, 10);
    }
    free(text);
    return ok;
}

pid_t proc_parent(pid_t pid)
{
    char state;
    pid_t parent = 0;
    return read_stat(pid, &state, &parent) ? parent : 0;
}

char proc_state(pid_t pid)
{
    char state = 0;
    pid_t parent;
    return read_stat(pid, &state, &parent) ? state : 0;
}

void proc_descendants(pid_t pid, struct pids *out)
{
    struct pids all = {0};
    struct map wanted = {0};
    each_number("/proc", &all);
    map_put(&wanted, (uint64_t)pid, 0, 1, NULL);
    /* Children may stand before their parents in the listing: go on until nothing is added. */
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < all.len; i++) {
            if (map_get(&wanted, (uint64_t)all.data[i], 0) ||
                !map_get(&wanted, (uint64_t)proc_parent(all.data[i]), 0))
                continue;
            map_put(&wanted, (uint64_t)all.data[i], 0, 1, NULL);
            *vector_push(out) = all.data[i];
            more = true;
        }
    }
    map_release(&wanted);
    vector_release(&all);
}

/* "start-end rwxp offset device inode   path"; false if it is not such a line. */
static bool parse_mapping(char *line, struct proc_mapping *m, bool *executable)
{
    char *s = line;
    m->start = strtoull(s, &s, 16);
    if (*s != '-')
        return false;
    m->end = strtoull(s + 1, &s, 16);
    if (*s != ' ' || strlen(s) < 6)
        return false;
    *executable = s[3] == 'x';
    m->offset = strtoull(s + 5, &s, 16);
    for (int field = 0; field < 2; field++) {
        s += strspn(s, " ");
        s += strcspn(s, " ");
    }
    m->path = s + strspn(s, " ");
    return m->end > m->start;
}

int proc_each_mapping(pid_t pid, void (*each)(void *context, const struct proc_mapping *m),
                      void *context, struct error *err)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int rc = io_slurp(path, PROC_FILE_MAX, &text, NULL, err);
    if (rc)
        return rc;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        struct proc_mapping m;
        bool executable;
        if (parse_mapping(line, &m, &executable) && executable)
            each(context, &m);
    }
    free(text);
    return 0;
}
