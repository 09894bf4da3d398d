/* Files that the agent writes itself; see alone.h. System calls alone, nothing is allocated. */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/alone.h"
#include "agent/arch.h"

bool alone_open(struct alone_file *f, const char *path)
{
    f->used = 0;
    f->failed = false;
    f->fd = (int)raw4(SYS_openat, AT_FDCWD, path,
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return f->fd >= 0;
}

static void flush(struct alone_file *f)
{
    for (size_t done = 0; done < f->used && !f->failed;) {
        long n = raw3(SYS_write, f->fd, f->bytes + done, f->used - done);
        if (n > 0)
            done += (size_t)n;
        else if (n != -4 /* EINTR */)
            f->failed = true;
    }
    f->used = 0;
}

void alone_put(struct alone_file *f, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size) {
        size_t part = sizeof f->bytes - f->used < size ? sizeof f->bytes - f->used : size;
        memcpy(f->bytes + f->used, from, part);
        f->used += part;
        from += part;
        size -= part;
        if (f->used == sizeof f->bytes)
            flush(f);
    }
}

void alone_text(struct alone_file *f, const char *text)
{
    alone_put(f, text, strlen(text));
}

/* The digits of `n`, the last at end[-1]; returns the first. */
static char *digits_of(uint64_t n, unsigned base, char *end)
{
    do
        *--end = "0123456789abcdef"[n % base];
    while (n /= base);
    return end;
}

void alone_number(struct alone_file *f, uint64_t n, unsigned width)
{
    char text[24];
    char *first = digits_of(n, 10, text + sizeof text);
    while ((size_t)(text + sizeof text - first) < width && first > text)
        *--first = ' ';
    alone_put(f, first, (size_t)(text + sizeof text - first));
}

void alone_address(struct alone_file *f, uint64_t address)
{
    char text[24];
    char *first = digits_of(address, 16, text + sizeof text);
    *--first = 'x';
    *--first = '0';
    *--first = ' ';
    alone_put(f, first, (size_t)(text + sizeof text - first));
}

void alone_maps(struct alone_file *f)
{
    flush(f);
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    for (long n; (n = raw3(SYS_read, fd, f->bytes, sizeof f->bytes)) > 0;) {
        f->used = (size_t)n;
        flush(f);
    }
    raw1(SYS_close, fd);
}

bool alone_close(struct alone_file *f)
{
    flush(f);
    raw1(SYS_close, f->fd);
    return !f->failed;
}

void alone_name(char out[ALONE_PATH + 32], const char *name, const char *separator, uint64_t number,
                unsigned digits, const char *end)
{
    char text[24];
    char *last = text + sizeof text, *first = digits_of(number, 10, last);
    while ((size_t)(last - first) < digits && first > text)
        *--first = '0';
    size_t at = strlen(name);
    memcpy(out, name, at);
    memcpy(out + at, separator, strlen(separator));
    at += strlen(separator);
    memcpy(out + at, first, (size_t)(last - first));
    at += (size_t)(last - first);
    memcpy(out + at, end, strlen(end) + 1);
}
