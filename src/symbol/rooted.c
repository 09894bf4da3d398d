#include "symbol/rooted.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

static bool has_parent_step(const char *path)
{
    for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, ".."))
        if ((p == path || p[-1] == '/') && (p[2] == '/' || !p[2]))
            return true;
    return false;
}

/* For kernels before 5.6. Cannot keep absolute links inside; refuses "..". */
static int open_joined(const char *root, const char *path, int flags)
{
    if (has_parent_step(path)) {
        errno = EXDEV;
        return -1;
    }
    struct text t = TEXT_INIT;
    text_format(&t, "%s/%s", root, path);
    int fd = open(t.data, flags);
    text_release(&t);
    return fd;
}

static int open_in_root(const char *root, const char *path, int flags)
{
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    int saved = errno;
    close(dir);
    errno = saved;
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return open_joined(root, path, flags);
    return fd;
}

static int open_regular(const char *root, const char *path, int flags)
{
    int fd = root && *root && strcmp(root, "/") != 0 ? open_in_root(root, path, flags)
                                                     : open(path, flags);
    if (fd < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

int rooted_open(const char *root, const char *path)
{
    return open_regular(root, path, OPEN_FLAGS);
}

int rooted_open_nofollow(const char *root, const char *path)
{
    return open_regular(root, path, OPEN_FLAGS | O_NOFOLLOW);
}

char *rooted_slurp(int fd, size_t max, size_t *len)
{
    struct stat st;
    size_t used = 0, cap = 1 << 16;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size < max)
        cap = (size_t)st.st_size + 1;
    char *data = memory_grow(NULL, cap + 1, 1);
    for (;;) {
        ssize_t got = io_read(fd, data + used, cap - used);
        if (got < 0)
            break;
        used += (size_t)got;
        if (used < cap) {
            data[used] = '\0';
            *len = used;
            return data;
        }
        if (used > max) {
            errno = EFBIG;
            break;
        }
        cap *= 2;
        data = memory_grow(data, cap + 1, 1);
    }
    int saved = errno;
    free(data);
    errno = saved;
    return NULL;
}
