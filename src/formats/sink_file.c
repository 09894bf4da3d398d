/* Files that appear whole or not at all; see sink_file.h. */
#include "formats/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/folders.h"

struct sink_file {
    struct sink sink;
    char *path;      /* NULL: standard output */
    char *temporary; /* NULL: a pipe or a device, which is written to as it is */
    int fd;
    bool replace, abandoned;
    uint64_t written;
    void (*progress)(void *context, uint64_t done, uint64_t size);
    void *context;
};

static int write_file(void *context, const void *data, size_t len, struct error *err)
{
    struct sink_file *f = context;
    if (io_write(f->fd, data, len) == 0) {
        f->written += len;
        if (f->progress)
            f->progress(f->context, f->written, 0);
        return 0;
    }
    f->abandoned = !f->temporary && errno == EPIPE;
    return error_errno(err, FAULT_SYSTEM, "cannot write to %s",
                       f->path ? f->path : "standard output");
}

static int check_path(const char *path, bool replace, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISREG(st.st_mode))
        return error_set(err, FAULT_SYSTEM,
                         "%s is not a regular file: name another one with -o, or use '-o -' and "
                         "redirect",
                         path);
    if (!replace)
        return error_set(err, FAULT_SYSTEM,
                         "%s exists already: use --force to replace it, or another name with -o",
                         path);
    return 0;
}

/* Pipes and devices are there to be written to. */
static bool is_stream(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode));
}

static int open_path(struct sink_file *f, const char *path, struct error *err)
{
    int rc = 0;
    if (is_stream(path)) {
        f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        struct text name = TEXT_INIT;
        text_add(&name, path);
        rc = check_path(path, f->replace, err);
        f->fd = rc ? -1 : temporary_file(&name);
        f->temporary = text_take(&name);
    }
    if (!rc && f->fd < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot create %s", path);
    return rc;
}

int sink_file_new(const char *path, bool replace, struct sink_file **out, struct error *err)
{
    struct sink_file *f = memory_alloc(sizeof *f);
    int rc = 0;
    f->fd = STDOUT_FILENO;
    f->replace = replace;
    sink_init(&f->sink, write_file, f);
    if (strcmp(path, "-")) {
        f->path = memory_strdup(path);
        rc = open_path(f, path, err);
        if (rc) {
            free(f->temporary);
            free(f->path);
            free(f);
            return rc;
        }
    }
    *out = f;
    return 0;
}

struct sink *sink_file_sink(struct sink_file *f)
{
    return &f->sink;
}

void sink_file_watch(struct sink_file *f,
                     void (*progress)(void *context, uint64_t done, uint64_t size), void *context)
{
    f->progress = progress;
    f->context = context;
}

bool sink_file_abandoned(const struct sink_file *f)
{
    return f->abandoned;
}

/* link() and not rename() where nothing may be replaced: it fails if the name was taken since. */
static int give_name(struct sink_file *f, struct error *err)
{
    int rc = f->replace ? rename(f->temporary, f->path) : link(f->temporary, f->path);
    if (rc < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot create %s", f->path);
    return 0;
}

int sink_file_free(struct sink_file *f, bool keep, struct error *err)
{
    int rc = keep ? sink_finish(&f->sink, err) : 0;
    if (f->path) {
        if (close(f->fd) < 0 && !rc && keep)
            rc = error_errno(err, FAULT_SYSTEM, "cannot write to %s", f->path);
        if (keep && !rc && f->temporary)
            rc = give_name(f, err);
        if (f->temporary)
            unlink(f->temporary);
    }
    sink_release(&f->sink);
    free(f->path);
    free(f->temporary);
    free(f);
    return rc;
}
