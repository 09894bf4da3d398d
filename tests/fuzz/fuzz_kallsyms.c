/* /proc/kallsyms, or a file given in its place: no symbol above an address names it. */
#include <stdint.h>
#include <stdlib.h>

#include "symbol/symbol_internal.h"

enum { ADDRESSES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t address[ADDRESSES];
    for (size_t i = 0; i < ADDRESSES; i++)
        address[i] = i < 32 ? 0xffffffff81000000 + i * 32 : 0xffffffffc0000000 + i * 128;
    struct symbol_request r = {.address = address, .count = ADDRESSES};
    struct answers a;
    bool hidden;
    answers_init(&a, &r);
    kallsyms_scan(&a, (const char *)data, size, &hidden);
    for (size_t i = 0; i < ADDRESSES; i++)
        if (a.item[i].named && (hidden || a.item[i].location->start > address[i]))
            abort();
    answers_release(&a);
    return 0;
}
