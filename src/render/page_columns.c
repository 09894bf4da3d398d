/* Columns of numbers as bytes; docs/PAGE.md draws them. */
#include <assert.h>

#include "render/page_internal.h"

struct column *column_add(struct columns *c, const char *name, enum column_coding coding)
{
    assert(c->len < COLUMNS_MAX);
    struct column *column = &c->all[c->len++];
    *column = (struct column){.name = name, .coding = coding, .bytes = TEXT_INIT};
    return column;
}

static uint64_t zigzag(uint64_t v)
{
    return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

void column_put(struct column *c, uint64_t value)
{
    char bytes[10];
    size_t len = 0;
    uint64_t v = value;
    if (c->coding == COLUMN_DELTA)
        v = zigzag(value - c->last);
    else if (c->coding == COLUMN_SIGNED)
        v = zigzag(value);
    c->last = value;
    c->rows++;
    for (; v >= 0x80; v >>= 7)
        bytes[len++] = (char)(v | 0x80);
    bytes[len++] = (char)v;
    text_add_len(&c->bytes, bytes, len);
}

void columns_json(const struct columns *c, struct json *j)
{
    static const char *const codings[] = {"plain", "signed", "delta"};
    json_key(j, "columns");
    json_open_array(j);
    for (size_t i = 0; i < c->len; i++) {
        json_open_object(j);
        json_put_string(j, "name", c->all[i].name);
        json_put_string(j, "coding", codings[c->all[i].coding]);
        json_put_uint(j, "rows", c->all[i].rows);
        json_put_uint(j, "bytes", c->all[i].bytes.len);
        if (c->all[i].later)
            json_put_bool(j, "later", true);
        json_end(j);
    }
    json_end(j);
}

int columns_write(const struct columns *c, bool later, page_sink *sink, void *context)
{
    int result = 0;
    for (size_t i = 0; i < c->len && !result; i++)
        if (c->all[i].later == later)
            result = sink(context, c->all[i].bytes.data, c->all[i].bytes.len);
    return result;
}

void columns_release(struct columns *c)
{
    for (size_t i = 0; i < c->len; i++)
        text_release(&c->all[i].bytes);
    c->len = 0;
}
