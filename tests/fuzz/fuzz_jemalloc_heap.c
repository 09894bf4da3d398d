/* Any bytes as jemalloc-heap: read, or refused with a sentence. */
#include "read_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return read_format("jemalloc-heap", data, size);
}
