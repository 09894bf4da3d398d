/*
 * ClickHouse's format RowBinary: values one after the other, texts with their length before them,
 * in the order of bytes that the machines have that sonde runs on.
 */
#ifndef SONDE_ROW_BINARY_H
#define SONDE_ROW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

/* Writing. */
void row_u8(struct text *t, uint8_t v);
void row_u16(struct text *t, uint16_t v);
void row_u64(struct text *t, uint64_t v);
void row_text(struct text *t, const void *data, size_t len);

/* Reading; texts are copied into an arena. A reader that ran over its end stays there. */
struct row_reader {
    const uint8_t *at, *end;
    struct arena arena;
    bool broken;
};
bool row_more(struct row_reader *r);
uint64_t row_take(struct row_reader *r, size_t bytes);
const char *row_take_text(struct row_reader *r, size_t *len);

#endif
