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
#include "base/vector.h"

#define ENDING ".part"
#define LOOK_NS 1000000000ull /* between two looks at how full the folder is */

struct spool {
    char *folder;
    int fd; /* of the folder */
    uint64_t max;
    unsigned serial;
    uint64_t bytes, looked; /* what it held when it was looked at last, and what was added since */
    VECTOR(char *) listed;  /* names in their order, when it was listed last */
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

static void forget_list(struct spool *s)
{
    for (size_t i = 0; i < s->listed.len; i++)
        free(s->listed.data[i]);
    s->listed.len = 0;
}

void spool_free(struct spool *s)
{
    if (!s)
        return;
    forget_list(s);
    vector_release(&s->listed);
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

/* Looking at every part for every part would take ever longer: now and then is enough, and before
 * one is refused. */
static bool has_room(struct spool *s, uint64_t size)
{
    uint64_t parts, now = clock_now();
    if (!s->looked || now - s->looked > LOOK_NS || s->bytes + size > s->max) {
        spool_measure(s, &parts, &s->bytes);
        s->looked = now;
    }
    return s->bytes + size <= s->max;
}

int spool_put(struct spool *s, const char *key, const struct spool_piece *pieces, size_t count,
              struct error *err)
{
    uint64_t size = 0;
    char name[160], made[170];
    for (size_t i = 0; i < count; i++)
        size += pieces[i].len;
    if (!has_room(s, size))
        return error_set(err, FAULT_LIMIT,
                         "%s holds %llu bytes that wait to be sent, and takes %llu", s->folder,
                         (unsigned long long)s->bytes, (unsigned long long)s->max);
    snprintf(name, sizeof name, "%020llu-%010u-%d-%.64s" ENDING, (unsigned long long)clock_wall(),
             s->serial++, (int)getpid(), key);
    snprintf(made, sizeof made, ".%s", name);
    int rc = write_pieces(s, made, pieces, count);
    if (!rc)
        rc = renameat(s->fd, made, s->fd, name);
    if (!rc)
        rc = fsync(s->fd);
    s->bytes += size;
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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_parts(struct spool *s)
{
    DIR *d = list(s);
    forget_list(s);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_part(e->d_name))
            *vector_push(&s->listed) = memory_strdup(e->d_name);
    if (d)
        closedir(d);
    if (s->listed.len)
        qsort(s->listed.data, s->listed.len, sizeof *s->listed.data, by_name);
}

/* Index of the first listed name after that one. */
static size_t place_after(const struct spool *s, const char *name)
{
    size_t low = 0, high = s->listed.len;
    while (name && low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(s->listed.data[middle], name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* By the last list, as long as it has one; parts that came later have later names. */
static char *oldest_after(struct spool *s, const char *after)
{
    for (int turn = 0; turn < 2; turn++) {
        for (size_t at = place_after(s, after); at < s->listed.len; at++)
            if (faccessat(s->fd, s->listed.data[at], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return memory_strdup(s->listed.data[at]);
        if (!turn)
            list_parts(s);
    }
    return NULL;
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
    if (s->listed.len && !strcmp(s->listed.data[0], name)) {
        free(s->listed.data[0]);
        memmove(s->listed.data, s->listed.data + 1, --s->listed.len * sizeof *s->listed.data);
    }
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
