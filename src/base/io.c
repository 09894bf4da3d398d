/* Whole reads and writes; see io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

ssize_t io_read(int fd, void *data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = read(fd, (char *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t io_pread(int fd, void *data, size_t len, uint64_t offset)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(fd, (char *)data + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int io_write(int fd, const void *data, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(fd, (const char *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

static int slurp_fd(int fd, const char *path, size_t max, char **data, size_t *len,
                    struct error *err)
{
    size_t cap = 4096, used = 0;
    char *buf = memory_alloc(cap);
    for (;;) {
        ssize_t n = io_read(fd, buf + used, cap - used - 1);
        if (n < 0) {
            free(buf);
            return error_errno(err, FAULT_SYSTEM, "cannot read %s", path);
        }
        used += (size_t)n;
        if (used > max) {
            free(buf);
            return error_set(err, FAULT_LIMIT, "%s is larger than %zu bytes", path, max);
        }
        if (used < cap - 1)
            break;
        cap *= 2;
        buf = memory_grow(buf, cap, 1);
    }
    buf[used] = 0;
    *data = buf;
    if (len)
        *len = used;
    return 0;
}

int io_slurp(const char *path, size_t max, char **data, size_t *len, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot open %s", path);
    int rc = slurp_fd(fd, path, max, data, len, err);
    close(fd);
    return rc;
}

int io_make_folders(const char *path, struct error *err)
{
    char *copy = memory_strdup(path);
    int rc = 0;
    for (char *p = copy + 1; !rc; p++) {
        if (*p && *p != '/')
            continue;
        char c = *p;
        *p = 0;
        if (mkdir(copy, 0700) < 0 && errno != EEXIST)
            rc = error_errno(err, FAULT_SYSTEM, "cannot make the folder %s", copy);
        *p = c;
        if (!c)
            break;
    }
    free(copy);
    return rc;
}
