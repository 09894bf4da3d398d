/* Memory first, then a file that goes with its descriptor; see aside.h. */
#include "base/aside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/folders.h"

#define IN_MEMORY ((size_t)8 << 20)
#define NO_FILE (-1)

static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system has nameless files. */
    struct text path = TEXT_INIT;
    text_format(&path, "%s/sonde", folder);
    fd = temporary_file(&path);
    if (fd >= 0)
        unlink(path.data);
    text_release(&path);
    return fd;
}

static void move_to_file(struct aside *s)
{
    if (!s->fd) {
        s->fd = open_nameless(temporary_root()) + 1;
        if (!s->fd)
            s->fd = NO_FILE;
    }
    if (s->fd == NO_FILE)
        return;
    if (io_write(s->fd - 1, s->data, s->len) == 0) {
        s->filed += s->len;
        s->len = 0;
        return;
    }
    /* Half of it may be there; what is in memory still goes after what was whole. */
    if (lseek(s->fd - 1, (off_t)s->filed, SEEK_SET) < 0 || !s->filed) {
        close(s->fd - 1);
        s->fd = NO_FILE;
    }
}

uint64_t aside_add(struct aside *s, const void *data, size_t len)
{
    uint64_t at = s->filed + s->len;
    if (s->len && s->len + len > IN_MEMORY)
        move_to_file(s);
    if (s->len + len > s->cap) {
        size_t cap = s->cap ? s->cap : 4096;
        while (cap < s->len + len)
            cap *= 2;
        s->data = memory_grow(s->data, cap, 1);
        s->cap = cap;
    }
    memcpy(s->data + s->len, data, len);
    s->len += len;
    return at;
}

bool aside_read(const struct aside *s, uint64_t at, void *data, size_t len)
{
    if (at >= s->filed) {
        if (at - s->filed > s->len || len > s->len - (at - s->filed))
            return false;
        memcpy(data, s->data + (at - s->filed), len);
        return true;
    }
    /* What was added in one piece is in the file or in memory as one piece. */
    return io_pread(s->fd - 1, data, len, at) == (ssize_t)len;
}

void aside_release(struct aside *s)
{
    if (s->fd > 0)
        close(s->fd - 1);
    free(s->data);
    *s = (struct aside){0};
}
