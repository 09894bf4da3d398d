/* Any bytes as the head of a request: refused or understood, never more. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head h;
    const char *why = NULL;
    char *bytes = memory_alloc(size + 1);
    if (size)
        memcpy(bytes, data, size);
    int status = head_parse(bytes, size, &h, &why);
    if (status ? !why : !h.host || h.path[0] != '/' || (h.chunked && h.length))
        abort();
    free(bytes);
    return 0;
}
