/* LEB128 numbers and encoded pointers; see cursor.h. */
#include "unwind/cursor.h"

uint64_t cursor_uleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = cursor_u8(c);
        uint64_t bits = byte & 0x7f;
        if (shift > 63 ? bits != 0 : (shift == 63 && bits > 1))
            c->bad = true;
        if (c->bad)
            return 0;
        if (shift <= 63)
            value |= bits << shift;
        if (!(byte & 0x80))
            return value;
        if (shift > 140) { /* padding has to end somewhere */
            c->bad = true;
            return 0;
        }
    }
}

int64_t cursor_sleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        if (c->bad)
            return 0;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (shift + 7 < 64 && byte & 0x40)
            value |= UINT64_MAX << (shift + 7);
        return (int64_t)value;
    }
    c->bad = true;
    return 0;
}

const char *cursor_string(struct cursor *c)
{
    const uint8_t *nul = c->bad ? NULL : memchr(c->at, 0, cursor_left(c));
    if (!nul) {
        c->bad = true;
        return NULL;
    }
    const char *text = (const char *)c->at;
    c->at = nul + 1;
    return text;
}

uint64_t cursor_pointer_plain(struct cursor *c, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x00: /* absptr */
    case 0x04: /* udata8 */
    case 0x0c: /* sdata8 */
        return cursor_fixed(c, 8);
    case 0x01:
        return cursor_uleb(c);
    case 0x02:
        return cursor_fixed(c, 2);
    case 0x03:
        return cursor_fixed(c, 4);
    case 0x09:
        return (uint64_t)cursor_sleb(c);
    case 0x0a:
        return (uint64_t)(int64_t)(int16_t)cursor_fixed(c, 2);
    case 0x0b:
        return (uint64_t)(int64_t)(int32_t)cursor_fixed(c, 4);
    }
    c->bad = true;
    return 0;
}

uint64_t cursor_pointer(struct cursor *c, uint8_t encoding, const struct pointer_bases *bases)
{
    uint64_t here = bases->vaddr + (uint64_t)(c->at - bases->section);
    switch (encoding & 0x70) {
    case 0x00:
        return cursor_pointer_plain(c, encoding);
    case 0x10:
        return here + cursor_pointer_plain(c, encoding);
    case 0x20:
        return bases->text + cursor_pointer_plain(c, encoding);
    case 0x30:
        return bases->data + cursor_pointer_plain(c, encoding);
    case 0x40:
        return bases->function + cursor_pointer_plain(c, encoding);
    case 0x50: /* aligned: an absolute pointer at the next multiple of its size */
        cursor_take(c, -here & 7);
        return cursor_fixed(c, 8);
    }
    c->bad = true;
    return 0;
}
