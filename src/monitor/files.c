/* The links of /proc/PID and what they lead to; see files.h. */
#include "monitor/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"

static const char *kind_of(mode_t mode)
{
    return S_ISREG(mode)                    ? "file"
           : S_ISDIR(mode)                  ? "folder"
           : S_ISSOCK(mode)                 ? "socket"
           : S_ISFIFO(mode)                 ? "pipe"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "device"
                                            : "other";
}

/* "pos:\t0\nflags:\t0100002\n..." */
static void read_info(pid_t pid, struct open_file *f)
{
    char path[64], *text;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", pid, f->fd);
    if (io_slurp(path, 1 << 16, &text, NULL, NULL))
        return;
    const char *at = strstr(text, "pos:");
    f->offset = at ? strtoull(at + 4, NULL, 10) : 0;
    at = strstr(text, "flags:");
    unsigned long flags = at ? strtoul(at + 6, NULL, 8) : 0;
    f->access = (flags & O_PATH)                  ? '-'
                : (flags & O_ACCMODE) == O_RDONLY ? 'r'
                : (flags & O_ACCMODE) == O_WRONLY ? 'w'
                                                  : 'u';
    free(text);
}

static void add(struct files *f, pid_t pid, const char *fd, const char *path)
{
    char link[PATH_MAX];
    struct stat s;
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n < 0)
        return;
    link[n] = 0;
    struct open_file one = {.access = '-', .kind = "other", .name = memory_strdup(link)};
    snprintf(one.fd, sizeof one.fd, "%s", fd);
    if (stat(path, &s) == 0) {
        one.kind = kind_of(s.st_mode);
        one.inode = s.st_ino;
        one.size = S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
    }
    if (isdigit((unsigned char)fd[0]))
        read_info(pid, &one);
    *vector_push(&f->list) = one;
}

static int by_fd(const void *a, const void *b)
{
    const struct open_file *x = a, *y = b;
    bool nx = isdigit((unsigned char)x->fd[0]), ny = isdigit((unsigned char)y->fd[0]);
    long a_number = strtol(x->fd, NULL, 10), b_number = strtol(y->fd, NULL, 10);
    return nx != ny                     ? nx - ny
           : nx && a_number != b_number ? (a_number > b_number ? 1 : -1)
                                        : strcmp(x->fd, y->fd);
}

int files_read(struct files *f, pid_t pid, struct error *err)
{
    static const char *const links[] = {"cwd", "exe", "root"};
    char path[300];
    *f = (struct files){0};
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    if (!d && errno == ENOENT)
        return error_set(err, FAULT_MISSING, "there is no process %d", pid);
    if (!d)
        return error_errno(err, FAULT_SYSTEM,
                           "cannot look at the files of process %d; its owner or root can", pid);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, links[i]);
        add(f, pid, links[i], path);
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/fd/%s", pid, e->d_name);
        add(f, pid, e->d_name, path);
    }
    closedir(d);
    if (f->list.len)
        qsort(f->list.data, f->list.len, sizeof *f->list.data, by_fd);
    return 0;
}

void files_release(struct files *f)
{
    for (size_t i = 0; i < f->list.len; i++)
        free(f->list.data[i].name);
    vector_release(&f->list);
}
