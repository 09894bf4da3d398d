/*
 * A frame section from anywhere, and a whole ELF file from anywhere, compiled to rows: must end, in
 * bounds, with rows that hold their promises. The first byte chooses: bit 0 an ELF file instead of
 * a bare section, bit 1 .debug_frame, bit 2 the section's size is exact.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/rows_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct rows *rows)
{
    if (!rows_valid(rows))
        abort();
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows_find(rows, rows->base + rows->row[i].pc) != &rows->row[i])
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct rows rows;
    const struct rows_image image = {.frame = data + 1,
                                     .frame_size = size - 1,
                                     .frame_vaddr = 0x100000,
                                     .low = 0x1000,
                                     .high = 0x200000,
                                     .debug_frame = data[0] >> 1 & 1,
                                     .exact_size = data[0] >> 2 & 1};
    int rc =
        data[0] & 1 ? rows_read_memory(data + 1, size - 1, &rows) : rows_compile(&image, &rows);
    if (!rc)
        check(&rows);
    rows_release(&rows);
    return 0;
}
