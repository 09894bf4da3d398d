/* Parts that wait on disk; see spool.h. */
#include "store/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define ENDING ".part"

struct spool {
    char *folder;
    int fd; /* of the folder */
    uint64_t max;
    unsigned serial;
};

int spool_open(const char *folder, uint64_t max, struct spool **out, struct error *err)
{
    int rc = io_make_folders(folder, err);
    if (rc)
        return rc;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot open the folder %s", folder);
    struct spool *s = memory_alloc(sizeof *s);
    *s = (struct spool){.folder = memory_strdup(folder), .fd = fd, .max = max};
    *out = s;
    return 0;
}

void spool_free(struct spool *s)
{
    if (!s)
        return;
    close(s->fd);
    free(s->folder);
    free(s);
}

static int write_pieces(struct spool *s, const char *name, const struct spool_piece *pieces,
                        size_t count)
{
    int fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = io_write(fd, pieces[i].data, pieces[i].len);
    if (!rc)
        rc = fsync(fd);
    int saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

int spool_put(struct spool *s, const char *key, const struct spool_piece *pieces, size_t count,
              struct error *err)
{
    uint64_t parts, bytes, size = 0;
    char name[160], made[170];
    for (size_t i = 0; i < count; i++)
        size += pieces[i].len;
    spool_measure(s, &parts, &bytes);
    if (bytes + size > s->max)
        return error_set(err, FAULT_LIMIT,
                         "%s holds %llu bytes that wait to be sent, and takes %llu", s->folder,
                         (unsigned long long)bytes, (unsigned long long)s->max);
    snprintf(name, sizeof name, "%020llu-%010u-%d-%.64s" ENDING, (unsigned long long)clock_wall(),
             s->serial++, (int)getpid(), key);
    snprintf(made, sizeof made, ".%s", name);
    int rc = write_pieces(s, made, pieces, count);
    if (!rc)
        rc = renameat(s->fd, made, s->fd, name);
    if (!rc)
        rc = fsync(s->fd);
    if (!rc)
        return 0;
    int saved = errno;
    unlinkat(s->fd, made, 0);
    errno = saved;
    return error_errno(err, errno == ENOSPC || errno == EDQUOT ? FAULT_LIMIT : FAULT_SYSTEM,
                       "cannot keep what waits to be sent in %s", s->folder);
}

static bool is_part(const char *name)
{
    return name[0] != '.' && text_ends(name, ENDING);
}

static DIR *list(struct spool *s)
{
    int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        close(fd);
    return d;
}

static char *oldest_after(struct spool *s, const char *after)
{
    char *best = NULL;
    DIR *d = list(s);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!is_part(e->d_name) || (after && strcmp(e->d_name, after) <= 0))
            continue;
        if (best && strcmp(e->d_name, best) >= 0)
            continue;
        free(best);
        best = memory_strdup(e->d_name);
    }
    if (d)
        closedir(d);
    return best;
}

int spool_next(struct spool *s, const char *after, char **name, char **data, size_t *len,
               struct error *err)
{
    char *at = after ? memory_strdup(after) : NULL;
    for (;;) {
        char *found = oldest_after(s, at);
        free(at);
        if (!found)
            return 0;
        struct text path = TEXT_INIT;
        text_format(&path, "%s/%s", s->folder, found);
        int rc = io_slurp(path.data, s->max, data, len, err);
        text_release(&path);
        if (!rc) {
            *name = found;
            return 1;
        }
        at = found;
    }
}

void spool_remove(struct spool *s, const char *name)
{
    unlinkat(s->fd, name, 0);
}

void spool_measure(struct spool *s, uint64_t *parts, uint64_t *bytes)
{
    *parts = *bytes = 0;
    DIR *d = list(s);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat st;
        if (!is_part(e->d_name) || fstatat(s->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        ++*parts;
        *bytes += (uint64_t)st.st_size;
    }
    if (d)
        closedir(d);
}
