/*
 * From an instruction's offset to its line, in the three formats that CPython has had.
 *
 * lnotab (to 3.9): pairs | bytes of code u8 | lines s8 |; a line begins after its pair's bytes.
 * ranges (3.10): pairs | bytes of code u8 | lines s8 |; the line is that of the pair's own bytes,
 *     -128 says that they have none.
 * locations (3.11 on): entries | 1 | code:4 | units-1:3 | operands, whose first bit is 0:
 *     0-9 one more byte, same line; 10-12 two more bytes, line + code - 10; 13 a signed number of
 *     lines; 14 the same and three numbers more; 15 no line.
 *     Numbers have six bits a byte, least first, bit 6 says that more follow; signed ones have
 *     the sign in bit 0. A unit is two bytes.
 */
#include "cpython/cpython.h"

/* A module begins on line 0, before its first: that is CPYTHON_LINE_NONE too. */
static int32_t checked(int64_t line)
{
    return line >= 0 && line <= INT32_MAX ? (int32_t)line : CPYTHON_LINE_BAD;
}

static int32_t line_lnotab(const uint8_t *at, const uint8_t *end, int64_t line, int32_t lasti)
{
    int64_t offset = 0;
    for (; end - at >= 2; at += 2) {
        offset += at[0];
        if (offset > lasti)
            break;
        line += (int8_t)at[1];
    }
    return checked(line);
}

static int32_t line_ranges(const uint8_t *at, const uint8_t *end, int64_t line, int32_t lasti)
{
    int64_t offset = 0;
    for (; end - at >= 2; at += 2) {
        int8_t delta = (int8_t)at[1];
        offset += at[0];
        line += delta == -128 ? 0 : delta;
        if (lasti < offset)
            return delta == -128 ? CPYTHON_LINE_NONE : checked(line);
    }
    return CPYTHON_LINE_BAD;
}

static uint64_t location_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && !(**at & 0x80); shift += 6) {
        uint8_t byte = *(*at)++;
        if (shift < 60)
            value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int32_t line_locations(const uint8_t *at, const uint8_t *end, int64_t line, int32_t lasti)
{
    int64_t offset = 0;
    while (at < end) {
        uint8_t head = *at++;
        unsigned code = head >> 3 & 15;
        if (!(head & 0x80))
            return CPYTHON_LINE_BAD;
        offset += 2 * ((head & 7) + 1);
        if (code == 13 || code == 14) {
            uint64_t delta = location_number(&at, end);
            line += delta & 1 ? -(int64_t)(delta >> 1) : (int64_t)(delta >> 1);
        } else if (code >= 10 && code <= 12) {
            line += code - 10;
        }
        if (line > INT32_MAX || line < -INT32_MAX)
            return CPYTHON_LINE_BAD;
        if (lasti < offset)
            return code == 15 ? CPYTHON_LINE_NONE : checked(line);
        while (at < end && !(*at & 0x80))
            at++;
    }
    return CPYTHON_LINE_BAD;
}

int32_t cpython_line(enum cpython_lines kind, const void *table, size_t size, int32_t first_line,
                     int32_t lasti)
{
    const uint8_t *at = table, *end = at + size;
    if (lasti < 0)
        return checked(first_line);
    switch (kind) {
    case CPYTHON_LINES_LNOTAB:
        return line_lnotab(at, end, first_line, lasti);
    case CPYTHON_LINES_RANGES:
        return line_ranges(at, end, first_line, lasti);
    case CPYTHON_LINES_LOCATIONS:
        return line_locations(at, end, first_line, lasti);
    }
    return CPYTHON_LINE_BAD;
}
