/* What a code object is called and where it comes from; see cpython.h. */
#include "cpython/cpython.h"

#include <string.h>

#include "cpython/memory.h"
#include "cpython/text.h"

#define TABLE_MAX (1u << 24)

/* The object's fixed part, if it is a code object: where it lies in this process, else a copy. */
static int read_object(const struct cpython *py, const struct cpython_memory *memory, uint64_t code,
                       uint8_t copy[LAYOUT_CODE_MAX], const uint8_t **bytes)
{
    if (!address_is_sane(code))
        return CPYTHON_DAMAGED;
    bool here = !memory->read;
    *bytes = here ? (const uint8_t *)code : copy;
    if (here ? !memory_is_readable(memory, code, py->code_size)
             : !memory_read(memory, code, copy, py->code_size))
        return CPYTHON_UNREADABLE;
    return memory_type_is(memory, word_of(*bytes, LAYOUT_TYPE), py->code_type, "code")
               ? CPYTHON_OK
               : CPYTHON_DAMAGED;
}

/* Of what never changes in a code object, and hardly ever is the same in two. */
static uint64_t stamp_of(const struct layout *l, const uint8_t *bytes)
{
    const uint64_t part[] = {word_of(bytes, l->code_name), word_of(bytes, l->code_filename),
                             word_of(bytes, l->code_table), half_of(bytes, l->code_first)};
    uint64_t stamp = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        stamp = (stamp ^ part[i]) * 0xff51afd7ed558ccd;
        stamp ^= stamp >> 32;
    }
    return stamp;
}

int cpython_code_stamp(const struct cpython *py, const struct cpython_memory *memory, uint64_t code,
                       uint64_t *stamp)
{
    uint8_t copy[LAYOUT_CODE_MAX];
    const uint8_t *bytes;
    int fault = read_object(py, memory, code, copy, &bytes);
    if (!fault)
        *stamp = stamp_of(&py->layout, bytes);
    return fault;
}

static int read_table_place(const struct cpython_memory *memory, uint64_t object,
                            struct cpython_code *out)
{
    uint64_t size;
    if (!address_is_sane(object))
        return CPYTHON_DAMAGED;
    if (!memory_word(memory, object + LAYOUT_SIZE, &size))
        return CPYTHON_UNREADABLE;
    if (size > TABLE_MAX)
        return CPYTHON_DAMAGED;
    out->table = object + LAYOUT_BYTES;
    out->table_size = (uint32_t)size;
    return CPYTHON_OK;
}

int cpython_code_read(const struct cpython *py, const struct cpython_memory *memory, uint64_t code,
                      struct cpython_code *out)
{
    const struct layout *l = &py->layout;
    uint8_t copy[LAYOUT_CODE_MAX];
    const uint8_t *bytes;
    int fault = read_object(py, memory, code, copy, &bytes);
    if (fault)
        return fault;
    out->first_line = (int32_t)half_of(bytes, l->code_first);
    out->flags = half_of(bytes, l->code_flags);
    out->stamp = stamp_of(l, bytes);
    ssize_t length =
        cpython_text(py, memory, word_of(bytes, l->code_name), out->name, sizeof(out->name));
    if (length >= 0 && l->code_qualname == LAYOUT_ABSENT)
        memcpy(out->qualname, out->name, sizeof(out->name));
    else if (length >= 0)
        length = cpython_text(py, memory, word_of(bytes, l->code_qualname), out->qualname,
                              sizeof(out->qualname));
    if (length >= 0)
        length = cpython_text(py, memory, word_of(bytes, l->code_filename), out->filename,
                              sizeof(out->filename));
    if (length < 0)
        return (int)length;
    return read_table_place(memory, word_of(bytes, l->code_table), out);
}

ssize_t cpython_table_read(const struct cpython_memory *memory, const struct cpython_code *code,
                           void *buffer, size_t size)
{
    if (code->table_size > size)
        return CPYTHON_ABSENT;
    if (code->table_size && !memory_read(memory, code->table, buffer, code->table_size))
        return CPYTHON_UNREADABLE;
    return (ssize_t)code->table_size;
}
