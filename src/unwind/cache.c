/*
 * Rows at rest, so that a module is compiled once on a machine: rows_cache_* of rows.h. A file is
 *
 *   struct header   64 bytes and the build-id, padded to 128
 *   rows            16 bytes each
 *   wide rules      152 bytes each
 *   expressions
 *
 * in the byte order of the machine that wrote it, which is the only one that reads it.
 */
#include "unwind/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/rows_internal.h"

#define MAGIC 0x73776f72646e6f73ull /* "sondrows" */
#define VERSION 1u                  /* of the layout and of what the compiler makes */
#define COUNT_MAX (1u << 26)

struct header {
    uint64_t magic;
    uint32_t version, machine;
    uint64_t base;
    uint32_t rows, wides, expr_size, dropped;
    uint64_t checksum; /* of the payload */
    uint32_t id_size, spare[3];
    uint8_t id[ROWS_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct header) == 128, "the header's size is part of the format");
_Static_assert(sizeof(struct row) == 16, "the row's size is part of the format");

/* FNV's idea on words: catches a torn or damaged file, not an attacker, who cannot own the file. */
static uint64_t checksum(const void *data, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325ull;
    const uint8_t *p = data;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
        sum ^= sum >> 32;
    }
    for (; size; p++, size--)
        sum = (sum ^ *p) * 0x100000001b3ull;
    return sum;
}

/* The names of the subfolder ("ab") and the file in it ("cdef….rows"). */
struct cache_name {
    char folder[3];
    char file[2 * ROWS_BUILD_ID_MAX + 8];
};

static int make_name(const uint8_t *id, size_t len, struct cache_name *name)
{
    static const char hex[] = "0123456789abcdef";
    if (len < 2 || len > ROWS_BUILD_ID_MAX)
        return -EINVAL;
    char text[2 * ROWS_BUILD_ID_MAX];
    for (size_t i = 0; i < len; i++) {
        text[2 * i] = hex[id[i] >> 4];
        text[2 * i + 1] = hex[id[i] & 15];
    }
    memcpy(name->folder, text, 2);
    name->folder[2] = 0;
    memcpy(name->file, text + 2, 2 * len - 2);
    memcpy(name->file + 2 * len - 2, ".rows", 6);
    return 0;
}

static bool ours(const struct stat *st)
{
    return (st->st_uid == geteuid() || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* The subfolder's descriptor; made if `make`. */
static int open_folder(const char *dir, const char *sub, bool make)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (make && mkdir(dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return -errno;
    if (make && mkdirat(top, sub, 0700) < 0 && errno != EEXIST) {
        int rc = -errno;
        close(top);
        return rc;
    }
    struct stat st;
    int fd = openat(top, sub, flags);
    int rc = fd < 0 ? -errno : 0;
    if (!rc && (fstat(fd, &st) < 0 || !ours(&st))) {
        close(fd);
        rc = -EPERM;
    }
    close(top);
    return rc ? rc : fd;
}

static int read_all(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)to + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EBADMSG;
        done += (size_t)n;
    }
    return 0;
}

static int write_all(int fd, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)from + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return 0;
}

static int load_file(int fd, const uint8_t *id, size_t len, struct rows *out)
{
    struct stat st;
    struct header h;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || !ours(&st))
        return -EPERM;
    int rc = read_all(fd, &h, sizeof(h));
    if (rc)
        return rc;
    const struct rows_layout layout = {h.rows, h.wides, h.expr_size};
    if (h.magic != MAGIC || h.version != VERSION || h.machine != UNWIND_ELF_MACHINE || !h.rows ||
        h.rows > COUNT_MAX || h.wides > COUNT_MAX || h.expr_size > COUNT_MAX || h.id_size != len ||
        memcmp(h.id, id, len) || (uint64_t)st.st_size != sizeof(h) + rows_payload(&layout))
        return -EBADMSG;
    rc = rows_allocate(&layout, out);
    if (rc)
        return rc;
    out->base = h.base;
    out->dropped = h.dropped;
    rc = read_all(fd, out->mapping, out->mapping_size);
    if (!rc && (checksum(out->mapping, out->mapping_size) != h.checksum || !rows_valid(out)))
        rc = -EBADMSG;
    if (rc)
        rows_release(out);
    return rc;
}

int rows_cache_load(const char *dir, const uint8_t *build_id, size_t len, struct rows *out)
{
    memset(out, 0, sizeof(*out));
    struct cache_name name;
    int rc = make_name(build_id, len, &name);
    if (rc)
        return rc;
    int folder = open_folder(dir, name.folder, false);
    if (folder < 0)
        return folder == -ENOENT ? -ENODATA : folder;
    int fd = openat(folder, name.file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    rc = fd < 0 ? (errno == ENOENT ? -ENODATA : -errno) : load_file(fd, build_id, len, out);
    if (fd >= 0)
        close(fd);
    close(folder);
    return rc;
}

static int store_file(int folder, const struct cache_name *name, const struct header *h,
                      const struct rows *rows)
{
    static uint32_t serial;
    char temporary[48];
    snprintf(temporary, sizeof(temporary), ".%ld.%u", (long)getpid(),
             __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
    unlinkat(folder, temporary, 0); /* of an earlier process with our number */
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, h, sizeof(*h));
    if (!rc)
        rc = write_all(fd, rows->mapping, rows->mapping_size);
    if (close(fd) < 0 && !rc)
        rc = -errno;
    if (!rc && renameat(folder, temporary, folder, name->file) < 0)
        rc = -errno;
    if (rc)
        unlinkat(folder, temporary, 0);
    return rc;
}

int rows_cache_store(const char *dir, const uint8_t *build_id, size_t len, const struct rows *rows)
{
    struct cache_name name;
    int rc = make_name(build_id, len, &name);
    if (rc)
        return rc;
    if (!rows->count)
        return -ENODATA;
    struct header h = {.magic = MAGIC,
                       .version = VERSION,
                       .machine = UNWIND_ELF_MACHINE,
                       .base = rows->base,
                       .rows = rows->count,
                       .wides = rows->wide_count,
                       .expr_size = rows->expr_size,
                       .dropped = rows->dropped,
                       .checksum = checksum(rows->mapping, rows->mapping_size),
                       .id_size = (uint32_t)len};
    memcpy(h.id, build_id, len);
    int folder = open_folder(dir, name.folder, true);
    if (folder < 0)
        return folder;
    rc = store_file(folder, &name, &h, rows);
    close(folder);
    return rc;
}

int rows_open(int fd, const char *dir, struct rows *out)
{
    uint8_t id[ROWS_BUILD_ID_MAX];
    int len = dir ? rows_read_build_id(fd, id) : -ENODATA;
    if (len > 0 && rows_cache_load(dir, id, (size_t)len, out) == 0)
        return 0;
    int rc = rows_read_elf(fd, out);
    if (!rc && len > 0)
        rows_cache_store(dir, id, (size_t)len, out);
    return rc;
}
