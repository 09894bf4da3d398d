/*
 * What 3.13 says of its own layout: _PyRuntime begins with a struct of 64-bit offsets,
 *
 *     0 "xdebugpy"   8 version   16 free-threaded   24 offsets, group after group
 *
 * A build that moved a field thereby says so. What it says is taken only where it can be true.
 */
#include "cpython/describe.h"

#include <string.h>

#include "cpython/memory.h"

#define WORD(n) (24u + 8u * (n))
#define DESCRIPTION_SIZE WORD(56)
#define STRUCT_MAX (1u << 20) /* no structure of CPython's is larger */

/* Which word of the description is which field of ours, and the word it counts from: the GIL's
 * fields are given as the interpreter's own. Other words are sizes, and fields of no use here. */
static const struct {
    uint8_t word, from;
    uint16_t field;
} fields[] = {
    {2, 0, offsetof(struct layout, runtime_head)},
    {4, 0, offsetof(struct layout, interp_id)},
    {5, 0, offsetof(struct layout, interp_next)},
    {6, 0, offsetof(struct layout, interp_threads)},
    {8, 0, offsetof(struct layout, interp_modules)},
    {11, 0, offsetof(struct layout, interp_gil)},
    {14, 12, offsetof(struct layout, gil_locked)},
    {15, 12, offsetof(struct layout, gil_holder)},
    {18, 0, offsetof(struct layout, thread_next)},
    {19, 0, offsetof(struct layout, thread_interp)},
    {20, 0, offsetof(struct layout, thread_frame)},
    {21, 0, offsetof(struct layout, thread_ident)},
    {22, 0, offsetof(struct layout, thread_native)},
    {23, 0, offsetof(struct layout, thread_chunk)},
    {26, 0, offsetof(struct layout, frame_back)},
    {27, 0, offsetof(struct layout, frame_code)},
    {28, 0, offsetof(struct layout, frame_instr)},
    {30, 0, offsetof(struct layout, frame_owner)},
    {32, 0, offsetof(struct layout, code_filename)},
    {33, 0, offsetof(struct layout, code_name)},
    {34, 0, offsetof(struct layout, code_qualname)},
    {35, 0, offsetof(struct layout, code_table)},
    {36, 0, offsetof(struct layout, code_first)},
    {40, 0, offsetof(struct layout, code_units)},
};

static uint32_t *field_of(struct layout *layout, uint16_t offset)
{
    return (uint32_t *)(void *)((char *)layout + offset);
}

int describe_read(uint64_t runtime, const struct cpython_memory *memory, struct layout *layout)
{
    uint8_t raw[DESCRIPTION_SIZE];
    if (!memory_read(memory, runtime, raw, sizeof(raw)))
        return CPYTHON_UNREADABLE;
    if (memcmp(raw, "xdebugpy", 8))
        return CPYTHON_DAMAGED;
    uint64_t version = word_of(raw, 8);
    if (version >> 24 != 3 || (version >> 16 & 255) != layout->minor)
        return CPYTHON_DAMAGED;
    if (word_of(raw, 16))
        return CPYTHON_FREE_THREADED;
    struct layout told = *layout;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint64_t offset = word_of(raw, WORD(fields[i].word));
        if (fields[i].from)
            offset -= word_of(raw, WORD(fields[i].from));
        if (offset >= STRUCT_MAX)
            return CPYTHON_DAMAGED;
        *field_of(&told, fields[i].field) = (uint32_t)offset;
    }
    *layout = told;
    return layout_is_sane(layout) ? CPYTHON_OK : CPYTHON_DAMAGED;
}
