/* Any bytes as a compressed body: the first says how it is packed and how much may come out. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "serve/http_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const encodings[] = {"gzip", "deflate", "zstd", "br"};
    if (!size)
        return 0;
    const char *encoding = encodings[*data % 4], *why = NULL;
    size_t max = (size_t)1 << (4 + (*data >> 2) % 18);
    /* A copy that ends with the input, so that a step beyond it is seen. */
    struct text in = {.data = memory_dup(data + 1, size - 1), .len = size - 1};
    struct text out = TEXT_INIT;
    int status = inflate_body(encoding, &in, max, &out, &why);
    if (status ? !why : out.len > max || out.data[out.len])
        abort();
    if (status && status != 400 && status != 413 && status != 415)
        abort();
    text_release(&out);
    free(in.data);
    return 0;
}
