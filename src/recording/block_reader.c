/*
 * Reads blocks back, past damage: a block whose checksum is wrong is skipped, and
 * the next block magic is searched byte by byte. What was skipped is counted.
 */
#include "recording/block.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/io.h"
#include "base/memory.h"
#include "recording/block_internal.h"
#include "wire/crc32c.h"

#define WINDOW_MIN ((size_t)1 << 20)
/* A stored body is never larger than the largest raw one: the writer keeps the smaller. */
#define STORED_MAX BLOCK_RAW_MAX

struct block_reader {
    int fd;
    bool at_end, follow;
    uint8_t *window; /* bytes of the file from `start` to `start + len` */
    size_t at, len, cap;
    uint64_t start;
    uint32_t next_sequence;
    ZSTD_DCtx *zstd;
    uint8_t *raw;
    size_t raw_cap;
    struct block_damage damage;
};

/* Makes at least `need` bytes available at window[at], unless the file ends first. */
static int fill(struct block_reader *r, size_t need, struct error *err)
{
    if (r->len - r->at >= need || r->at_end)
        return 0;
    if (r->at) /* no window yet: nothing to move, and no pointer to give */
        memmove(r->window, r->window + r->at, r->len - r->at);
    r->start += r->at;
    r->len -= r->at;
    r->at = 0;
    if (r->cap < need) {
        r->cap = need > WINDOW_MIN ? need : WINDOW_MIN;
        r->window = memory_grow(r->window, r->cap, 1);
    }
    ssize_t n = io_read(r->fd, r->window + r->len, r->cap - r->len);
    if (n < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot read the recording");
    if ((size_t)n < r->cap - r->len)
        r->at_end = true;
    r->len += (size_t)n;
    return 0;
}

int block_reader_new(int fd, const char *name, struct block_reader **out, struct error *err)
{
    static const uint8_t magic[8] = BLOCK_MAGIC_HEAD;
    struct block_reader *r = memory_alloc(sizeof *r);
    r->fd = fd;
    int rc = fill(r, BLOCK_HEAD_SIZE, err);
    if (!rc && r->len < BLOCK_HEAD_SIZE)
        rc = error_set(err, FAULT_INPUT, "%s ends after %zu bytes: not a sonde recording", name,
                       r->len);
    else if (!rc && memcmp(r->window, magic, sizeof magic))
        rc = error_set(err, FAULT_INPUT, "%s is not a sonde recording (wrong first bytes)", name);
    else if (!rc && get_u16(r->window + 8) > BLOCK_MAJOR)
        rc = error_set(err, FAULT_INPUT,
                       "%s was written by a newer sonde (format %u, this one reads %u): use that "
                       "version to read it",
                       name, get_u16(r->window + 8), BLOCK_MAJOR);
    if (rc) {
        block_reader_free(r);
        return rc;
    }
    r->at = BLOCK_HEAD_SIZE;
    r->zstd = ZSTD_createDCtx();
    *out = r;
    return 0;
}

static void note_damage(struct block_reader *r, size_t bytes)
{
    if (!r->damage.bytes_skipped)
        r->damage.first_offset = r->start + r->at;
    r->damage.bytes_skipped += bytes;
}

/* Moves to the next place where a block may begin, at least one byte on. */
static int resynchronise(struct block_reader *r, struct error *err)
{
    note_damage(r, 1);
    r->at++;
    for (;;) {
        int rc = fill(r, BLOCK_HEADER_SIZE, err);
        if (rc)
            return rc;
        while (r->len - r->at >= 4 && get_u32(r->window + r->at) != BLOCK_MAGIC) {
            r->damage.bytes_skipped++;
            r->at++;
        }
        if (r->len - r->at >= BLOCK_HEADER_SIZE || r->at_end)
            return 0;
    }
}

static bool header_is_sane(const uint8_t *h)
{
    return get_u32(h) == BLOCK_MAGIC && get_u32(h + 8) <= STORED_MAX &&
           get_u32(h + 12) <= BLOCK_RAW_MAX && get_u32(h + 16) <= PACKING_ZSTD &&
           (get_u32(h + 16) == PACKING_ZSTD || get_u32(h + 8) == get_u32(h + 12));
}

/* Unpacks the body at `body`; false if it is not what its header says. */
static bool unpack(struct block_reader *r, const uint8_t *h, const uint8_t *body,
                   const uint8_t **records, size_t *len)
{
    uint32_t stored = get_u32(h + 8), raw = get_u32(h + 12);
    *len = raw;
    if (get_u32(h + 16) == PACKING_NONE) {
        *records = body;
        return true;
    }
    if (r->raw_cap < raw) {
        r->raw = memory_grow(r->raw, raw, 1);
        r->raw_cap = raw;
    }
    *records = r->raw;
    return raw && r->zstd && ZSTD_decompressDCtx(r->zstd, r->raw, raw, body, stored) == raw;
}

static void follow_sequence(struct block_reader *r, uint32_t sequence)
{
    if (sequence > r->next_sequence)
        r->damage.blocks_skipped += sequence - r->next_sequence;
    r->next_sequence = sequence + 1;
}

int block_read(struct block_reader *r, const uint8_t **records, size_t *len, struct error *err)
{
    r->at_end &= !r->follow;
    for (;;) {
        int rc = fill(r, BLOCK_HEADER_SIZE, err);
        if (rc)
            return rc;
        size_t left = r->len - r->at;
        if (left < BLOCK_HEADER_SIZE) {
            if (left && !r->follow) {
                note_damage(r, left);
                r->damage.cut = true;
                r->at = r->len;
            }
            return 0;
        }
        if (header_is_sane(r->window + r->at)) {
            size_t whole = BLOCK_HEADER_SIZE + get_u32(r->window + r->at + 8);
            rc = fill(r, whole, err);
            if (rc)
                return rc;
            const uint8_t *h = r->window + r->at;
            if (r->len - r->at < whole && r->follow)
                return 0;
            if (r->len - r->at < whole) {
                r->damage.cut = true;
            } else if (crc32c(crc32c(0, h, 20), h + BLOCK_HEADER_SIZE, whole - BLOCK_HEADER_SIZE) ==
                           get_u32(h + 20) &&
                       unpack(r, h, h + BLOCK_HEADER_SIZE, records, len)) {
                follow_sequence(r, get_u32(h + 4));
                r->at += whole;
                return 1;
            }
        }
        rc = resynchronise(r, err);
        if (rc)
            return rc;
    }
}

void block_reader_follow(struct block_reader *r, bool on)
{
    r->follow = on;
    r->at_end = false;
}

const struct block_damage *block_reader_damage(const struct block_reader *r)
{
    return &r->damage;
}

uint64_t block_reader_offset(const struct block_reader *r)
{
    return r->start + r->at;
}

void block_reader_free(struct block_reader *r)
{
    if (!r)
        return;
    close(r->fd);
    ZSTD_freeDCtx(r->zstd);
    free(r->window);
    free(r->raw);
    free(r);
}
