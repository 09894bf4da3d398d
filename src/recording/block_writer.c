/* Appends blocks to a recording; see block.h. */
#include "recording/block.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/io.h"
#include "base/memory.h"
#include "recording/block_internal.h"
#include "wire/crc32c.h"

#define COMPRESSION_LEVEL 3

struct block_writer {
    int fd;
    uint32_t sequence;
    uint64_t written;
    ZSTD_CCtx *zstd;
    uint8_t *out;
    size_t out_cap;
};

int block_writer_new(int fd, struct block_writer **out, struct error *err)
{
    struct block_writer *w = memory_alloc(sizeof *w);
    w->fd = fd;
    uint8_t head[BLOCK_HEAD_SIZE] = BLOCK_MAGIC_HEAD;
    put_u16(head + 8, BLOCK_MAJOR);
    put_u16(head + 10, BLOCK_MINOR);
    if (io_write(fd, head, sizeof head) < 0) {
        error_errno(err, FAULT_SYSTEM, "cannot write the recording");
        close(fd);
        free(w);
        return FAULT_SYSTEM;
    }
    w->written = sizeof head;
    w->zstd = ZSTD_createCCtx();
    if (w->zstd)
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
    *out = w;
    return 0;
}

/* Puts the body behind the header's place in w->out; returns its size and the packing used. */
static size_t pack(struct block_writer *w, const void *records, size_t len, uint8_t *packing)
{
    size_t bound = ZSTD_compressBound(len) + BLOCK_HEADER_SIZE;
    if (w->out_cap < bound) {
        w->out = memory_grow(w->out, bound, 1);
        w->out_cap = bound;
    }
    if (w->zstd) {
        size_t n = ZSTD_compress2(w->zstd, w->out + BLOCK_HEADER_SIZE,
                                  w->out_cap - BLOCK_HEADER_SIZE, records, len);
        if (!ZSTD_isError(n) && n < len) {
            *packing = PACKING_ZSTD;
            return n;
        }
    }
    *packing = PACKING_NONE;
    memcpy(w->out + BLOCK_HEADER_SIZE, records, len);
    return len;
}

int block_write(struct block_writer *w, const void *records, size_t len, struct error *err)
{
    if (len > BLOCK_RAW_MAX)
        return error_set(err, FAULT_LIMIT, "a block of %zu bytes is too large to record", len);
    uint8_t packing;
    size_t stored = pack(w, records, len, &packing);
    uint8_t *h = w->out;
    put_u32(h, BLOCK_MAGIC);
    put_u32(h + 4, w->sequence);
    put_u32(h + 8, (uint32_t)stored);
    put_u32(h + 12, (uint32_t)len);
    put_u32(h + 16, packing);
    put_u32(h + 20, crc32c(crc32c(0, h, 20), h + BLOCK_HEADER_SIZE, stored));
    if (io_write(w->fd, w->out, BLOCK_HEADER_SIZE + stored) < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot write the recording");
    w->sequence++;
    w->written += BLOCK_HEADER_SIZE + stored;
    return 0;
}

uint64_t block_bytes_written(const struct block_writer *w)
{
    return w->written;
}

int block_writer_free(struct block_writer *w, struct error *err)
{
    if (!w)
        return 0;
    int rc = close(w->fd) < 0 ? error_errno(err, FAULT_SYSTEM, "cannot finish the recording") : 0;
    ZSTD_freeCCtx(w->zstd);
    free(w->out);
    free(w);
    return rc;
}
