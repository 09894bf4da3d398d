/*
 * A bounded reader of DWARF's encodings. Once a read passes the end, or a number does not fit, the
 * cursor is `bad`, every further read gives 0, and one check at the end of a series is enough.
 */
#ifndef SONDE_UNWIND_CURSOR_H
#define SONDE_UNWIND_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

/* What encoded pointers (DW_EH_PE_*) may be relative to. */
struct pointer_bases {
    const uint8_t *section; /* first byte of the section being read ... */
    uint64_t vaddr;         /* ... and its address, for pcrel */
    uint64_t text, data;
    uint64_t function; /* for funcrel */
};

#define POINTER_OMIT 0xff

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* The next `size` bytes, or NULL. */
static inline const uint8_t *cursor_take(struct cursor *c, uint64_t size)
{
    if (c->bad || size > cursor_left(c)) {
        c->bad = true;
        c->at = c->end;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += size;
    return p;
}

static inline uint64_t cursor_fixed(struct cursor *c, size_t size)
{
    uint64_t value = 0;
    const uint8_t *p = cursor_take(c, size);
    if (p)
        memcpy(&value, p, size);
    return value;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
    if (c->at < c->end)
        return *c->at++;
    c->bad = true;
    return 0;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
    return (uint32_t)cursor_fixed(c, 4);
}

/* LEB128; a number of more than 64 bits makes the cursor bad. */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

/* Skips a NUL-terminated string and returns it, or NULL. */
const char *cursor_string(struct cursor *c);

/* An encoded pointer; `indirect` ones cannot be followed and give the address of the pointer. */
uint64_t cursor_pointer(struct cursor *c, uint8_t encoding, const struct pointer_bases *bases);
/* Only the number, as for the length of a range: the format without what it is relative to. */
uint64_t cursor_pointer_plain(struct cursor *c, uint8_t encoding);

#endif
