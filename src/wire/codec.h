/*
 * Variable-length integers, the alphabet of every record. Seven bits a byte, least
 * significant first, the high bit says that more follow; at most ten bytes. Signed
 * values are zigzag-coded first. Reading is bounded and rejects what is cut or too long.
 */
#ifndef SONDE_CODEC_H
#define SONDE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10

/* Writes v at p (room for VARINT_MAX bytes) and returns how many bytes it took. */
static inline size_t varint_put(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}

static inline uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A bounded place in bytes that somebody else wrote. Once `bad`, every get returns 0. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static inline struct cursor cursor_make(const void *data, size_t len)
{
    return (struct cursor){.at = data, .end = (const uint8_t *)data + len};
}

static inline size_t cursor_left(const struct cursor *c)
{
    return c->bad ? 0 : (size_t)(c->end - c->at);
}

static inline uint64_t cursor_varint(struct cursor *c)
{
    uint64_t v = 0;
    const uint8_t *p = c->at;
    for (unsigned shift = 0; p < c->end && shift < 64; shift += 7) {
        uint8_t b = *p++;
        if (shift == 63 && b > 1)
            break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            c->at = p;
            return v;
        }
    }
    c->bad = true;
    c->at = c->end;
    return 0;
}

static inline int64_t cursor_signed(struct cursor *c)
{
    return unzigzag(cursor_varint(c));
}

/* The next `len` bytes, or NULL (and bad) when there are fewer. */
static inline const uint8_t *cursor_bytes(struct cursor *c, uint64_t len)
{
    if (c->bad || len > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        c->at = c->end;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += len;
    return p;
}

#endif
