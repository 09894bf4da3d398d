/* Rows of ClickHouse; see row_binary.h. */
#include "store/row_binary.h"

#include <string.h>

void row_u8(struct text *t, uint8_t v)
{
    text_add_len(t, &v, 1);
}

void row_u16(struct text *t, uint16_t v)
{
    text_add_len(t, &v, sizeof v);
}

void row_u64(struct text *t, uint64_t v)
{
    text_add_len(t, &v, sizeof v);
}

void row_text(struct text *t, const void *data, size_t len)
{
    for (size_t left = len;; left >>= 7) {
        row_u8(t, (uint8_t)((left & 127) | (left > 127 ? 128 : 0)));
        if (left <= 127)
            break;
    }
    text_add_len(t, data, len);
}

bool row_more(struct row_reader *r)
{
    return !r->broken && r->at < r->end;
}

uint64_t row_take(struct row_reader *r, size_t bytes)
{
    uint64_t v = 0;
    if ((size_t)(r->end - r->at) < bytes) {
        r->broken = true;
        r->at = r->end;
        return 0;
    }
    memcpy(&v, r->at, bytes);
    r->at += bytes;
    return v;
}

const char *row_take_text(struct row_reader *r, size_t *len)
{
    uint64_t size = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint64_t byte = row_take(r, 1);
        size |= (byte & 127) << shift;
        if (!(byte & 128))
            break;
    }
    if (r->broken || size > (uint64_t)(r->end - r->at)) {
        r->broken = true;
        size = 0;
    }
    const char *text = arena_strndup(&r->arena, "", 0);
    if (size) {
        char *copy = arena_alloc(&r->arena, size + 1);
        memcpy(copy, r->at, size);
        text = copy;
    }
    r->at += size;
    if (len)
        *len = size;
    return text;
}
