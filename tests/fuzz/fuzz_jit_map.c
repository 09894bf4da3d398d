/* What compilers at run time write: perf-PID.map if it begins with a letter or digit, else jitdump.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>

#include "symbol/symbol_internal.h"

enum { ADDRESSES = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t address[ADDRESSES];
    for (size_t i = 0; i < ADDRESSES; i++)
        address[i] = i < 120 ? 0x1000 + i * 64 : UINT64_MAX - (ADDRESSES - 1 - i);
    struct symbol_request r = {.address = address, .count = ADDRESSES};
    struct answers a;
    answers_init(&a, &r);
    if (size && isalnum(data[0]) && data[0] != 'D')
        perf_map_scan(&a, (const char *)data, size);
    else
        jitdump_scan(&a, data, size, "jit.dump", NULL);
    for (size_t i = 0; i < ADDRESSES; i++)
        if (a.item[i].named && (a.item[i].n != 1 || !a.item[i].location->linkage))
            abort();
    answers_release(&a);
    return 0;
}
