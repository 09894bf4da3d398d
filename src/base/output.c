/* What -o names; see output.h. */
#include "base/output.h"

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
#include "base/text.h"

#define NAMES_TRIED 100

/* The descriptor that a name stands for, or -1. Opening the name instead would begin at the start
 * of a file that others write to as well, and fails for sockets. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *number = path + strlen(folders[i]);
        if (text_starts(path, folders[i]) && *number && strlen(number) < 7 &&
            strspn(number, "0123456789") == strlen(number))
            return (int)strtol(number, NULL, 10);
    }
    return -1;
}

bool output_is_stream(const char *path)
{
    struct stat st;
    return descriptor_of(path) >= 0 ||
           (stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)));
}

static int check_file(const char *path, bool replace, mode_t *mode, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISREG(st.st_mode))
        return error_set(err, FAULT_SYSTEM,
                         "%s is a %s, not a regular file: name another one with -o, or use '-o -' "
                         "and redirect",
                         path,
                         S_ISLNK(st.st_mode)   ? "symbolic link"
                         : S_ISDIR(st.st_mode) ? "folder"
                                               : "disk or socket");
    if (!replace)
        return error_set(err, FAULT_SYSTEM,
                         "%s exists already: use --force to replace it, or another name with -o",
                         path);
    *mode = st.st_mode & 0777;
    return 0;
}

/* A file beside the one to be made, so that it can take that name. */
static int open_beside(struct output *o, mode_t mode)
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        struct text name = TEXT_INIT;
        text_format(&name, "%s.%d-%d.part", o->path, (int)getpid(), i);
        int fd = open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0)
            o->temporary = text_take(&name);
        else
            text_release(&name);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int output_open(struct output *o, const char *path, bool replace, mode_t mode, struct error *err)
{
    int there = descriptor_of(path), rc = 0;
    *o = (struct output){.fd = STDOUT_FILENO, .replace = replace};
    if (!strcmp(path, "-"))
        return 0;
    o->path = memory_strdup(path);
    if (there >= 0)
        o->fd = fcntl(there, F_DUPFD_CLOEXEC, 3);
    else if (output_is_stream(path))
        o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else if ((rc = check_file(path, replace, &mode, err)) == 0)
        o->fd = open_beside(o, mode);
    if (!rc && o->fd < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot create %s", path);
    if (rc) {
        free(o->path);
        *o = (struct output){.fd = -1};
    }
    return rc;
}

int output_write(struct output *o, const void *data, size_t len)
{
    if (io_write(o->fd, data, len) == 0)
        return 0;
    o->abandoned |= !o->temporary && errno == EPIPE;
    return -1;
}

int output_failed(const struct output *o, struct error *err)
{
    return error_errno(err, FAULT_SYSTEM, "cannot write to %s",
                       o->path ? o->path : "standard output");
}

/* Not rename() where nothing may be replaced: the name may have been taken since. */
static int give_name(const struct output *o, struct error *err)
{
    int rc = o->replace ? rename(o->temporary, o->path)
                        : renameat2(AT_FDCWD, o->temporary, AT_FDCWD, o->path, RENAME_NOREPLACE);
    if (rc < 0 && !o->replace && errno == EINVAL)
        rc = link(o->temporary, o->path); /* a file system that cannot */
    return rc < 0 ? error_errno(err, FAULT_SYSTEM, "cannot create %s", o->path) : 0;
}

int output_close(struct output *o, bool keep, struct error *err)
{
    int rc = 0;
    if (o->path && close(o->fd) < 0 && keep)
        rc = output_failed(o, err);
    if (o->temporary) {
        if (keep && !rc)
            rc = give_name(o, err);
        unlink(o->temporary);
    }
    free(o->path);
    free(o->temporary);
    *o = (struct output){.fd = -1, .abandoned = o->abandoned};
    return rc;
}
