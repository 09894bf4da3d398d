/* A reader's way in; see source.h. */
#include "formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io.h"
#include "base/mapped.h"
#include "base/memory.h"

#define PACKED_BUFFER ((size_t)64 * 1024)
#define TELL_EVERY ((uint64_t)1 << 20)

struct source {
    char *name;
    int fd; /* -1: memory */
    const uint8_t *memory;
    size_t memory_left;
    const uint8_t *memory_start;
    uint64_t taken, size; /* of the file itself */
    struct mapped whole;  /* the file as memory, once somebody asked for it */
    void (*progress)(void *context, uint64_t done, uint64_t size);
    void *context;

    bool packed, member_open, ended;
    bool line_open; /* the last line had no end */
    uint64_t told;  /* of `taken`, to whoever wants to know of progress */
    bool moved;     /* the file is to be read from `taken` on, but the descriptor is elsewhere */
    z_stream z;
    uint8_t *in; /* packed bytes */

    uint8_t *buffer; /* unpacked bytes [start, end) are still to be consumed */
    size_t start, end, cap;
    uint64_t offset; /* of buffer[start] */
};

/* Bytes as they are stored; 0 at the end, -1 with errno. */
static ssize_t take_raw(struct source *s, uint8_t *to, size_t len)
{
    ssize_t n;
    if (s->fd < 0) {
        n = (ssize_t)(len < s->memory_left ? len : s->memory_left);
        memcpy(to, s->memory, (size_t)n);
        s->memory += n;
        s->memory_left -= (size_t)n;
    } else if (s->moved && lseek(s->fd, (off_t)s->taken, SEEK_SET) < 0) {
        n = -1;
    } else {
        s->moved = false;
        do
            n = read(s->fd, to, len);
        while (n < 0 && errno == EINTR);
    }
    if (n > 0) {
        s->taken += (uint64_t)n;
        if (s->progress)
            s->progress(s->context, s->taken, s->size);
    }
    return n;
}

/* Makes room for at least one more byte behind buffer[end]. */
static void make_room(struct source *s)
{
    if (s->start) {
        memmove(s->buffer, s->buffer + s->start, s->end - s->start);
        s->end -= s->start;
        s->start = 0;
    }
    if (s->end + 4096 > s->cap) {
        s->cap = s->cap ? s->cap * 2 : PACKED_BUFFER * 2;
        s->buffer = memory_grow(s->buffer, s->cap, 1);
    }
}

static int fill_packed(struct source *s, struct error *err)
{
    s->z.next_out = s->buffer + s->end;
    s->z.avail_out = (unsigned)(s->cap - s->end);
    unsigned before = s->z.avail_out;
    while (s->z.avail_out == before && !s->ended) {
        if (!s->z.avail_in) {
            ssize_t n = take_raw(s, s->in, PACKED_BUFFER);
            if (n < 0)
                return error_errno(err, FAULT_SYSTEM, "cannot read %s", s->name);
            s->z.next_in = s->in;
            s->z.avail_in = (unsigned)n;
            if (!n && s->member_open)
                return source_bad(s, s->offset + (s->end - s->start), err,
                                  "the compressed data are cut short");
            if (!n) {
                s->ended = true;
                break;
            }
        }
        s->member_open = true;
        int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            s->member_open = false;
            inflateReset(&s->z);
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return source_bad(s, s->offset + (s->end - s->start), err,
                              "the compressed data are damaged (%s)", s->z.msg ? s->z.msg : "zlib");
        }
    }
    s->end += before - s->z.avail_out;
    return 0;
}

/* Tries for `want` unconsumed bytes in the buffer. */
static int fill(struct source *s, size_t want, struct error *err)
{
    while (s->end - s->start < want && !s->ended) {
        make_room(s);
        if (s->packed) {
            int rc = fill_packed(s, err);
            if (rc)
                return rc;
        } else {
            ssize_t n = take_raw(s, s->buffer + s->end, s->cap - s->end);
            if (n < 0)
                return error_errno(err, FAULT_SYSTEM, "cannot read %s", s->name);
            s->ended = n == 0;
            s->end += (size_t)n;
        }
        if (s->offset + (s->end - s->start) > SOURCE_TOTAL_MAX)
            return error_set(err, FAULT_LIMIT, "%s holds more than %llu bytes: import a part of it",
                             s->name, (unsigned long long)SOURCE_TOTAL_MAX);
    }
    return 0;
}

static void consume(struct source *s, size_t len)
{
    s->start += len;
    s->offset += len;
}

/* Looks for gzip's magic and, if it is there, puts the decompressor before the buffer. */
static int unwrap(struct source *s, struct error *err)
{
    int rc = fill(s, 3, err);
    if (rc || s->end < 3 || s->buffer[0] != 0x1f || s->buffer[1] != 0x8b || s->buffer[2] != 8)
        return rc;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK)
        return error_set(err, FAULT_SYSTEM, "zlib could not be started");
    /* What is buffered becomes the decompressor's first input. */
    s->in = memory_grow(NULL, s->cap > PACKED_BUFFER ? s->cap : PACKED_BUFFER, 1);
    memcpy(s->in, s->buffer, s->end);
    s->z.next_in = s->in;
    s->z.avail_in = (unsigned)s->end;
    s->start = s->end = 0;
    s->packed = true;
    s->ended = false;
    return 0;
}

/* Editors and shells of Windows begin text with a mark of its order of bytes. */
static int skip_mark(struct source *s, struct error *err)
{
    int rc = fill(s, 3, err);
    if (!rc && s->end - s->start >= 3 && !memcmp(s->buffer + s->start, "\xef\xbb\xbf", 3))
        consume(s, 3);
    return rc;
}

static int begin(struct source *s, struct source **out, struct error *err)
{
    int rc = unwrap(s, err);
    if (!rc)
        rc = skip_mark(s, err);
    if (rc) {
        source_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int source_from_fd(int fd, const char *name, struct source **out, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
        close(fd);
        return error_set(err, FAULT_INPUT, "%s is a folder, not a profile", name);
    }
    struct source *s = memory_alloc(sizeof *s);
    s->name = memory_strdup(name);
    s->fd = fd;
    s->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return begin(s, out, err);
}

int source_open(const char *path, struct source **out, struct error *err)
{
    bool standard = !strcmp(path, "-");
    int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return error_errno(err, errno == ENOENT ? FAULT_MISSING : FAULT_SYSTEM, "cannot open %s",
                           path);
    return source_from_fd(fd, standard ? "standard input" : path, out, err);
}

int source_from_memory(const void *data, size_t len, const char *name, struct source **out,
                       struct error *err)
{
    struct source *s = memory_alloc(sizeof *s);
    s->name = memory_strdup(name);
    s->fd = -1;
    s->memory = s->memory_start = data ? data : (const uint8_t *)"";
    s->memory_left = s->size = len;
    return begin(s, out, err);
}

void source_free(struct source *s)
{
    if (!s)
        return;
    mapped_close(&s->whole);
    if (s->fd >= 0)
        close(s->fd);
    if (s->packed)
        inflateEnd(&s->z);
    free(s->in);
    free(s->buffer);
    free(s->name);
    free(s);
}

const char *source_name(const struct source *s)
{
    return s->name;
}

uint64_t source_offset(const struct source *s)
{
    return s->offset;
}

uint64_t source_size(const struct source *s)
{
    return s->size;
}

void source_set_progress(struct source *s,
                         void (*progress)(void *context, uint64_t done, uint64_t size),
                         void *context)
{
    s->progress = progress;
    s->context = context;
}

ssize_t source_peek(struct source *s, size_t want, const uint8_t **data, struct error *err)
{
    if (want > SOURCE_PEEK_MAX)
        want = SOURCE_PEEK_MAX;
    int rc = fill(s, want, err);
    if (rc)
        return rc;
    size_t have = s->end - s->start;
    *data = s->buffer ? s->buffer + s->start : (const uint8_t *)"";
    return (ssize_t)(have < want ? have : want);
}

int source_read(struct source *s, void *data, size_t len, struct error *err)
{
    uint8_t *to = data;
    size_t left = len;
    while (left) {
        int rc = fill(s, left < PACKED_BUFFER ? left : PACKED_BUFFER, err);
        if (rc)
            return rc;
        size_t n = s->end - s->start;
        if (!n && left == len)
            return 0;
        if (!n)
            return source_bad(s, s->offset, err, "the file ends here, %zu bytes too early", left);
        n = n < left ? n : left;
        memcpy(to, s->buffer + s->start, n);
        consume(s, n);
        to += n;
        left -= n;
    }
    return 1;
}

int source_at(struct source *s, uint64_t offset, void *data, size_t len)
{
    if (s->packed || offset > s->size || len > s->size - offset)
        return 0;
    if (s->fd < 0) {
        memcpy(data, s->memory_start + offset, len);
        return 1;
    }
    return io_pread(s->fd, data, len, (off_t)offset) == (ssize_t)len;
}

const uint8_t *source_whole(struct source *s, uint64_t *size)
{
    if (s->packed || (s->fd >= 0 && !s->whole.data && !mapped_open(&s->whole, s->fd, s->size)))
        return NULL;
    *size = s->size;
    return s->fd < 0 ? s->memory_start : s->whole.data;
}

bool source_was_cut(const struct source *s)
{
    return mapped_was_cut(&s->whole);
}

void source_seek(struct source *s, uint64_t offset)
{
    bool far = offset < s->taken || offset - s->told >= TELL_EVERY;
    s->start = s->end = 0;
    s->offset = s->taken = offset < s->size ? offset : s->size;
    s->ended = false;
    if (s->fd < 0) {
        s->memory = s->memory_start + s->offset;
        s->memory_left = s->size - s->offset;
    } else {
        s->moved = true;
    }
    if (!far)
        return;
    s->told = s->taken;
    mapped_pass(&s->whole, s->taken);
    if (s->progress)
        s->progress(s->context, s->taken, s->size);
}

int source_skip(struct source *s, uint64_t len, struct error *err)
{
    while (len) {
        int rc = fill(s, 1, err);
        if (rc)
            return rc;
        size_t n = s->end - s->start;
        if (!n)
            return source_bad(s, s->offset, err, "the file ends here, %llu bytes too early",
                              (unsigned long long)len);
        n = n < len ? n : (size_t)len;
        consume(s, n);
        len -= n;
    }
    return 0;
}

int source_line(struct source *s, char **line, size_t *len, struct error *err)
{
    size_t seen = 0;
    uint8_t *end = NULL;
    for (;;) {
        size_t have = s->end - s->start;
        end = have > seen ? memchr(s->buffer + s->start + seen, '\n', have - seen) : NULL;
        if (end || (s->ended && have == seen))
            break;
        seen = have;
        if (seen > SOURCE_LINE_MAX)
            return source_bad(s, s->offset, err, "a line is longer than %zu bytes",
                              SOURCE_LINE_MAX);
        int rc = fill(s, seen + 1, err);
        if (rc)
            return rc;
    }
    size_t n = end ? (size_t)(end - (s->buffer + s->start)) : s->end - s->start;
    if (!end && !n)
        return 0;
    s->line_open = !end && !s->packed; /* what was packed whole is whole */
    if (!end)
        make_room(s); /* for the terminator */
    char *text = (char *)s->buffer + s->start;
    consume(s, end ? n + 1 : n);
    if (n && text[n - 1] == '\r')
        n--;
    text[n] = 0;
    *line = text;
    *len = n;
    return 1;
}

bool source_line_open(const struct source *s)
{
    return s->line_open;
}

int source_rest(struct source *s, uint8_t **data, size_t *len, struct error *err)
{
    size_t used = 0, cap = 4096;
    uint8_t *all = memory_grow(NULL, cap, 1);
    for (;;) {
        int rc = fill(s, 1, err);
        size_t n = s->end - s->start;
        if (!rc && used + n > SOURCE_WHOLE_MAX)
            rc = error_set(err, FAULT_LIMIT, "%s holds more than %zu bytes, which is our limit",
                           s->name, SOURCE_WHOLE_MAX);
        if (rc) {
            free(all);
            return rc;
        }
        if (!n)
            break;
        while (used + n + 1 > cap)
            all = memory_grow(all, cap *= 2, 1);
        memcpy(all + used, s->buffer + s->start, n);
        used += n;
        consume(s, n);
    }
    all[used] = 0;
    *data = all;
    *len = used;
    return 0;
}

int source_bad(const struct source *s, uint64_t offset, struct error *err, const char *format, ...)
{
    char reason[300];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return error_set(err, FAULT_INPUT, "%s, byte %llu%s: %s", s->name, (unsigned long long)offset,
                     s->packed ? " of the unpacked data" : "", reason);
}
