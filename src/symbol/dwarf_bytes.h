/* Bounded reading of DWARF's bytes: sections as libdw has them in memory, and numbers in them. */
#ifndef SONDE_SYMBOL_DWARF_BYTES_H
#define SONDE_SYMBOL_DWARF_BYTES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at, *end;
};

/* Absent ones are empty. */
struct dwarf_sections {
    struct bytes info, abbrev, line, line_str, str;
};

/* Of the file itself, or of a .dwo file. Compressed sections are the unpacked ones. */
void dwarf_sections_find(Dwarf *dwarf, bool split, struct dwarf_sections *out);

static inline size_t bytes_left(const struct bytes *b)
{
    return (size_t)(b->end - b->at);
}

/* Little numbers of 1 to 8 bytes, in native order; false past the end. */
static inline bool bytes_fixed(struct bytes *b, size_t size, uint64_t *value)
{
    *value = 0;
    if (size > bytes_left(b))
        return false;
    memcpy(value, b->at, size <= sizeof *value ? size : sizeof *value);
    b->at += size;
    return true;
}

static inline bool bytes_skip(struct bytes *b, uint64_t len)
{
    if (len > bytes_left(b))
        return false;
    b->at += len;
    return true;
}

/* What is beyond 64 bits is lost. */
static inline bool bytes_uleb(struct bytes *b, uint64_t *value)
{
    uint64_t v = 0;
    unsigned shift = 0;
    while (b->at < b->end) {
        uint8_t byte = *b->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            *value = v;
            return true;
        }
    }
    return false;
}

static inline bool bytes_sleb(struct bytes *b, int64_t *value)
{
    const uint8_t *from = b->at;
    uint64_t v;
    if (!bytes_uleb(b, &v))
        return false;
    size_t bits = (size_t)(b->at - from) * 7;
    if (bits < 64 && (b->at[-1] & 0x40))
        v |= ~(uint64_t)0 << bits;
    *value = (int64_t)v;
    return true;
}

/* A terminated string inside, or NULL. */
static inline const char *bytes_string(struct bytes *b)
{
    const char *s = (const char *)b->at;
    const uint8_t *nul = bytes_left(b) ? memchr(b->at, 0, bytes_left(b)) : NULL;
    if (!nul)
        return NULL;
    b->at = nul + 1;
    return s;
}

/* The terminated string at an offset of a section, or NULL. */
static inline const char *bytes_string_at(struct bytes b, uint64_t offset)
{
    return bytes_skip(&b, offset) ? bytes_string(&b) : NULL;
}

#endif
