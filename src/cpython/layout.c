/*
 * The table of layouts. Rows are sorted by version; a row holds until the next one. Sources: the
 * headers of each release. From 3.13 on they describe themselves (see describe.c); the rows serve
 * for what the descriptions leave out.
 */
#include "cpython/layout.h"

#define NONE LAYOUT_ABSENT

/* What frames and threads look like as objects on the heap, up to 3.10. */
#define FRAME_OBJECTS                                                                              \
    .entry = LAYOUT_ENTRY_EACH, .interp_next = 0, .interp_threads = 8, .interp_gil = NONE,         \
    .gil_holder = NONE, .gil_locked = NONE, .thread_next = 8, .thread_interp = 16,                 \
    .thread_frame = 24, .cframe_frame = NONE, .cframe_prev = NONE, .thread_native = NONE,          \
    .thread_chunk = NONE, .thread_top = NONE, .chunk_prev = NONE, .chunk_size = NONE,              \
    .chunk_top = NONE, .chunk_data = NONE, .frame_type = LAYOUT_TYPE, .frame_back = 24,            \
    .frame_code = 32, .frame_instr = NONE, .frame_owner = NONE, .frame_entry = NONE,               \
    .gen_frame = NONE, .code_qualname = NONE, .code_units = NONE, .text_ascii = 48,                \
    .text_compact = 72,                                                                            \
    .dict = {.keys = 32, .size = 8, .log2_index = NONE, .kind = NONE, .used = 32, .indices = 40}

/* And on a stack of their own, from 3.11 on. */
#define FRAME_STACKS                                                                               \
    .lines = CPYTHON_LINES_LOCATIONS, .lasti_scale = 1, .thread_next = 8, .thread_interp = 16,     \
    .chunk_prev = 0, .chunk_size = 8, .chunk_top = 16, .chunk_data = 24, .frame_type = NONE,       \
    .frame_lasti = NONE, .frame_instr = 56, .frame_gen = NONE, .code_flags = 48,                   \
    .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_table = 136,               \
    .code_bytes = NONE,                                                                            \
    .dict = {.keys = 32,                                                                           \
             .size = 8,                                                                            \
             .log2_index = 9,                                                                      \
             .kind = 10,                                                                           \
             .used = 24,                                                                           \
             .indices = 32,                                                                        \
             .size_is_log2 = 1}

/* clang-format off */
static const struct layout table[] = {
    {.minor = 6, .micro = 0, .lines = CPYTHON_LINES_LNOTAB, .lasti_scale = 1, FRAME_OBJECTS,
     .runtime_head = NONE, .runtime_current = NONE, .runtime_tss = NONE,
     .interp_id = NONE, .interp_modules = 16,
     .thread_ident = 152, .frame_lasti = 120, .frame_gen = 112,
     .code_flags = 32, .code_first = 36, .code_bytes = 40, .code_filename = 96, .code_name = 104,
     .code_table = 112},
    {.minor = 7, .micro = 0, .lines = CPYTHON_LINES_LNOTAB, .lasti_scale = 1, FRAME_OBJECTS,
     .runtime_head = 24, .runtime_current = 1392, .runtime_tss = 1416,
     .interp_id = 16, .interp_modules = 40,
     .thread_ident = 176, .frame_lasti = 104, .frame_gen = 96,
     .code_flags = 32, .code_first = 36, .code_bytes = 40, .code_filename = 96, .code_name = 104,
     .code_table = 112},
    {.minor = 7, .micro = 4, .lines = CPYTHON_LINES_LNOTAB, .lasti_scale = 1, FRAME_OBJECTS,
     .runtime_head = 24, .runtime_current = 1480, .runtime_tss = 1504,
     .interp_id = 16, .interp_modules = 40,
     .thread_ident = 176, .frame_lasti = 104, .frame_gen = 96,
     .code_flags = 32, .code_first = 36, .code_bytes = 40, .code_filename = 96, .code_name = 104,
     .code_table = 112},
    {.minor = 8, .micro = 0, .lines = CPYTHON_LINES_LNOTAB, .lasti_scale = 1, FRAME_OBJECTS,
     .runtime_head = 32, .runtime_current = 1368, .runtime_tss = 1392,
     .interp_id = 16, .interp_modules = 56,
     .thread_ident = 176, .frame_lasti = 104, .frame_gen = 96,
     .code_flags = 36, .code_first = 40, .code_bytes = 48, .code_filename = 104, .code_name = 112,
     .code_table = 120},
    {.minor = 9, .micro = 0, .lines = CPYTHON_LINES_LNOTAB, .lasti_scale = 1, FRAME_OBJECTS,
     .runtime_head = 32, .runtime_current = 568, .runtime_tss = 584,
     .interp_id = 24, .interp_modules = 856,
     .thread_ident = 176, .frame_lasti = 104, .frame_gen = 96,
     .code_flags = 36, .code_first = 40, .code_bytes = 48, .code_filename = 104, .code_name = 112,
     .code_table = 120},
    {.minor = 10, .micro = 0, .lines = CPYTHON_LINES_RANGES, .lasti_scale = 2, FRAME_OBJECTS,
     .runtime_head = 32, .runtime_current = 568, .runtime_tss = 584,
     .interp_id = 24, .interp_modules = 856,
     .thread_ident = 176, .frame_lasti = 96, .frame_gen = 88,
     .code_flags = 36, .code_first = 40, .code_bytes = 48, .code_filename = 104, .code_name = 112,
     .code_table = 120},
    {.minor = 11, .micro = 0, .entry = LAYOUT_ENTRY_FLAG, FRAME_STACKS, .owner_last = 3,
     .runtime_head = 40, .runtime_current = 576, .runtime_tss = 592,
     .interp_next = 0, .interp_id = 48, .interp_threads = 16, .interp_modules = 888,
     .interp_gil = NONE, .gil_holder = NONE, .gil_locked = NONE,
     .thread_frame = 56, .cframe_frame = 8, .cframe_prev = 16,
     .thread_ident = 152, .thread_native = 160,
     .thread_chunk = 296, .thread_top = 304,
     .frame_back = 48, .frame_code = 32, .frame_owner = 69, .frame_entry = 68, .gen_frame = 80,
     .code_first = 72, .code_units = 184, .text_ascii = 48, .text_compact = 72},
    {.minor = 12, .micro = 0, .entry = LAYOUT_ENTRY_SHIM, FRAME_STACKS, .owner_last = 3,
     .runtime_head = 40, .runtime_current = NONE, .runtime_tss = 1544,
     .interp_next = 0, .interp_id = 8, .interp_threads = 72, .interp_modules = 944,
     .interp_gil = 384, .gil_holder = 8, .gil_locked = 16,
     .thread_frame = 56, .cframe_frame = 0, .cframe_prev = 8,
     .thread_ident = 136, .thread_native = 144,
     .thread_chunk = 232, .thread_top = 240,
     .frame_back = 8, .frame_code = 0, .frame_owner = 70, .frame_entry = NONE, .gen_frame = 72,
     .code_first = 68, .code_units = 192, .text_ascii = 40, .text_compact = 56},
    {.minor = 13, .micro = 0, .entry = LAYOUT_ENTRY_SHIM, FRAME_STACKS, .owner_last = 3,
     .runtime_head = 632, .runtime_current = NONE, .runtime_tss = 2160,
     .interp_next = 7264, .interp_id = 7272, .interp_threads = 7344, .interp_modules = 7656,
     .interp_gil = 16, .gil_holder = 8, .gil_locked = 16,
     .thread_frame = 72, .cframe_frame = NONE, .cframe_prev = NONE,
     .thread_ident = 152, .thread_native = 160,
     .thread_chunk = 232, .thread_top = 240,
     .frame_back = 8, .frame_code = 0, .frame_owner = 70, .frame_entry = NONE, .gen_frame = 72,
     .code_first = 68, .code_units = 200, .text_ascii = 40, .text_compact = 56},
    /* As 3.13, but for what it says itself, which is all that matters. */
    {.minor = 14, .micro = 0, .entry = LAYOUT_ENTRY_SHIM, FRAME_STACKS, .owner_last = 4,
     .runtime_head = 632, .runtime_current = NONE, .runtime_tss = NONE,
     .interp_next = 7264, .interp_id = 7272, .interp_threads = 7344, .interp_modules = 7656,
     .interp_gil = 16, .gil_holder = 8, .gil_locked = 16,
     .thread_frame = 72, .cframe_frame = NONE, .cframe_prev = NONE,
     .thread_ident = 152, .thread_native = 160,
     .thread_chunk = 232, .thread_top = 240,
     .frame_back = 8, .frame_code = 0, .frame_owner = 74, .frame_entry = NONE, .gen_frame = 72,
     .code_first = 68, .code_units = 208, .text_ascii = 40, .text_compact = 56},
};
/* clang-format on */

const struct layout *layout_find(unsigned minor, unsigned micro)
{
    const struct layout *found = NULL;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].minor == minor && table[i].micro <= micro)
            found = &table[i];
    }
    return found;
}

static size_t past(size_t size, uint32_t offset, size_t width)
{
    return offset != LAYOUT_ABSENT && offset + width > size ? offset + width : size;
}

size_t layout_frame_size(const struct layout *l)
{
    size_t size = past(0, l->frame_type, 8);
    size = past(size, l->frame_back, 8);
    size = past(size, l->frame_code, 8);
    size = past(size, l->frame_lasti, 4);
    size = past(size, l->frame_instr, 8);
    size = past(size, l->frame_gen, 8);
    size = past(size, l->frame_owner, 1);
    return past(size, l->frame_entry, 1);
}

size_t layout_thread_size(const struct layout *l)
{
    size_t size = past(0, l->thread_next, 8);
    size = past(size, l->thread_interp, 8);
    size = past(size, l->thread_frame, 8);
    size = past(size, l->thread_ident, 8);
    size = past(size, l->thread_native, 8);
    size = past(size, l->thread_chunk, 8);
    return past(size, l->thread_top, 8);
}

size_t layout_code_size(const struct layout *l)
{
    size_t size = past(0, l->code_flags, 4);
    size = past(size, l->code_first, 4);
    size = past(size, l->code_name, 8);
    size = past(size, l->code_qualname, 8);
    size = past(size, l->code_filename, 8);
    size = past(size, l->code_table, 8);
    size = past(size, l->code_bytes, 8);
    return past(size, l->code_units, 0);
}

bool layout_is_sane(const struct layout *l)
{
    return layout_frame_size(l) <= LAYOUT_FRAME_MAX && layout_thread_size(l) <= LAYOUT_THREAD_MAX &&
           layout_code_size(l) <= LAYOUT_CODE_MAX;
}
