/* Any bytes as a chunked body, in one piece and byte by byte: the same must come out. */
#include <stdlib.h>
#include <string.h>

#include "serve/chunks.h"

#define MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chunks whole = {0}, single = {0};
    struct text all = TEXT_INIT, parts = TEXT_INIT;
    size_t taken = chunks_feed(&whole, (const char *)data, size, MAX, &all), at = 0;
    while (at < size && chunks_feed(&single, (const char *)data + at, 1, MAX, &parts))
        at++;
    if (taken != at || whole.state != single.state || all.len != parts.len || all.len > MAX + 1 ||
        memcmp(all.data, parts.data, all.len) != 0)
        abort();
    text_release(&all);
    text_release(&parts);
    return 0;
}
