/* Any bytes as an answer of ClickHouse: rows up to where it ends, and never a byte beyond. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/row_binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = memory_dup(size ? data : (const uint8_t *)"", size + (size == 0));
    struct row_reader r = {.at = bytes, .end = bytes + size};
    struct text out = TEXT_INIT;
    while (row_more(&r)) {
        size_t len = 0, before = out.len;
        uint64_t number = row_take(&r, 1 + (*r.at & 7));
        const char *text = row_take_text(&r, &len);
        if (len > size || text[len] || r.at > r.end)
            abort();
        row_u64(&out, number);
        row_text(&out, text, len);
        if (out.len < before + 8 + len)
            abort();
    }
    if (r.broken && r.at > r.end)
        abort();
    arena_release(&r.arena);
    text_release(&out);
    free(bytes);
    return 0;
}
