/*
 * Protocol buffers by hand: enough of the encoding for the few messages we read
 * and write. A message is fields: varint (number << 3 | wire type), then a varint,
 * 4 or 8 bytes, or a length and that many bytes.
 */
#ifndef SONDE_PROTO_H
#define SONDE_PROTO_H

#include <string.h>

#include "base/text.h"
#include "wire/codec.h"

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_field {
    uint64_t number;
    enum proto_wire wire;
    uint64_t value;       /* of a varint or a fixed one */
    const uint8_t *bytes; /* of a length-delimited one */
    size_t len;
};

/* The next field, or false at the end or when the bytes make no sense (then c->bad). */
static inline bool proto_next(struct cursor *c, struct proto_field *f)
{
    if (!cursor_left(c))
        return false;
    uint64_t head = cursor_varint(c);
    *f = (struct proto_field){.number = head >> 3, .wire = (enum proto_wire)(head & 7)};
    switch ((unsigned)f->wire) {
    case PROTO_VARINT:
        f->value = cursor_varint(c);
        break;
    case PROTO_FIXED64:
    case PROTO_FIXED32: {
        size_t len = f->wire == PROTO_FIXED64 ? 8 : 4;
        const uint8_t *p = cursor_bytes(c, len);
        for (size_t i = 0; p && i < len; i++)
            f->value |= (uint64_t)p[i] << (8 * i);
        break;
    }
    case PROTO_BYTES: {
        uint64_t len = cursor_varint(c);
        f->bytes = cursor_bytes(c, len);
        f->len = f->bytes ? (size_t)len : 0;
        break;
    }
    default:
        c->bad = true;
    }
    if (!f->number)
        c->bad = true;
    return !c->bad;
}

static inline void proto_add_varint(struct text *t, uint64_t v)
{
    text_reserve(t, VARINT_MAX);
    t->len += varint_put((uint8_t *)t->data + t->len, v);
}

/* Fields that are zero are left out, as every writer does. */
static inline void proto_add_uint(struct text *t, unsigned number, uint64_t v)
{
    if (!v)
        return;
    proto_add_varint(t, number << 3 | PROTO_VARINT);
    proto_add_varint(t, v);
}

static inline void proto_add_bytes(struct text *t, unsigned number, const void *data, size_t len)
{
    proto_add_varint(t, number << 3 | PROTO_BYTES);
    proto_add_varint(t, len);
    text_add_len(t, data, len);
}

#endif
