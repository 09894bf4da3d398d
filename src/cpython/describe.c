/*
 * What 3.13 and 3.14 say of their own layout: _PyRuntime begins with a struct of 64-bit offsets,
 *
 *     0 "xdebugpy"   8 version   16 free-threaded   24 offsets, group after group
 *
 * A build that moved a field thereby says so. What it says is taken only where it can be true.
 */
#include "cpython/describe.h"

#include <string.h>

#include "cpython/memory.h"

#define WORD(n) (24u + 8u * (n))
#define WORDS_MAX 84
#define STRUCT_MAX (1u << 20) /* no structure of CPython's is larger */

/* Which word of the description is which field of ours, and the word it counts from: the GIL's
 * fields are given as the interpreter's own. Other words are sizes, and fields of no use here. */
struct told {
    uint8_t word, from;
    uint16_t field;
};

#define FIELD(word, name)                                                                          \
    {                                                                                              \
        word, 0, offsetof(struct layout, name)                                                     \
    }

static const struct told told_by_13[] = {
    FIELD(2, runtime_head),
    FIELD(4, interp_id),
    FIELD(5, interp_next),
    FIELD(6, interp_threads),
    FIELD(8, interp_modules),
    FIELD(11, interp_gil),
    {14, 12, offsetof(struct layout, gil_locked)},
    {15, 12, offsetof(struct layout, gil_holder)},
    FIELD(18, thread_next),
    FIELD(19, thread_interp),
    FIELD(20, thread_frame),
    FIELD(21, thread_ident),
    FIELD(22, thread_native),
    FIELD(23, thread_chunk),
    FIELD(26, frame_back),
    FIELD(27, frame_code),
    FIELD(28, frame_instr),
    FIELD(30, frame_owner),
    FIELD(32, code_filename),
    FIELD(33, code_name),
    FIELD(34, code_qualname),
    FIELD(35, code_table),
    FIELD(36, code_first),
    FIELD(40, code_units),
};

/* The main thread, generations of code and the like came in between; strings and generators too. */
static const struct told told_by_14[] = {
    FIELD(2, runtime_head),
    FIELD(4, interp_id),
    FIELD(5, interp_next),
    FIELD(6, interp_threads),
    FIELD(9, interp_modules),
    FIELD(12, interp_gil),
    {15, 13, offsetof(struct layout, gil_locked)},
    {16, 13, offsetof(struct layout, gil_holder)},
    FIELD(21, thread_next),
    FIELD(22, thread_interp),
    FIELD(23, thread_frame),
    FIELD(24, thread_ident),
    FIELD(25, thread_native),
    FIELD(26, thread_chunk),
    FIELD(29, frame_back),
    FIELD(30, frame_code),
    FIELD(31, frame_instr),
    FIELD(33, frame_owner),
    FIELD(37, code_filename),
    FIELD(38, code_name),
    FIELD(39, code_qualname),
    FIELD(40, code_table),
    FIELD(41, code_first),
    FIELD(45, code_units),
    FIELD(77, text_ascii),
    FIELD(82, gen_frame),
};

static const struct description {
    uint8_t minor;
    uint8_t words; /* how long it is at least */
    uint8_t count;
    const struct told *told;
} descriptions[] = {
    {13, 56, sizeof(told_by_13) / sizeof(told_by_13[0]), told_by_13},
    {14, WORDS_MAX, sizeof(told_by_14) / sizeof(told_by_14[0]), told_by_14},
};

static const struct description *description_of(unsigned minor)
{
    for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++)
        if (descriptions[i].minor == minor)
            return &descriptions[i];
    return NULL;
}

static uint32_t *field_of(struct layout *layout, uint16_t offset)
{
    return (uint32_t *)(void *)((char *)layout + offset);
}

int describe_read(uint64_t runtime, const struct cpython_memory *memory, struct layout *layout)
{
    uint8_t raw[WORD(WORDS_MAX)];
    const struct description *d = description_of(layout->minor);
    if (!d)
        return CPYTHON_TOO_NEW;
    if (!memory_read(memory, runtime, raw, WORD(d->words)))
        return CPYTHON_UNREADABLE;
    if (memcmp(raw, "xdebugpy", 8))
        return CPYTHON_DAMAGED;
    uint64_t version = word_of(raw, 8);
    if (version >> 24 != 3 || (version >> 16 & 255) != layout->minor)
        return CPYTHON_DAMAGED;
    if (word_of(raw, 16))
        return CPYTHON_FREE_THREADED;
    struct layout told = *layout;
    for (size_t i = 0; i < d->count; i++) {
        uint64_t offset = word_of(raw, WORD(d->told[i].word));
        if (d->told[i].from)
            offset -= word_of(raw, WORD(d->told[i].from));
        if (offset >= STRUCT_MAX)
            return CPYTHON_DAMAGED;
        *field_of(&told, d->told[i].field) = (uint32_t)offset;
    }
    /* Nobody tells these, but they follow what is told. */
    told.thread_top = told.thread_chunk + 8;
    told.text_compact = told.text_ascii + 16;
    *layout = told;
    return layout_is_sane(layout) ? CPYTHON_OK : CPYTHON_DAMAGED;
}
