/*
 * Debug information, in this process: units, trees, line programs and names, as far as libdw itself
 * holds. Every answer is within its bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "symbol/symbol.h"

enum { ADDRESSES = 256 };

static void check(void *context, size_t module, size_t index,
                  const struct symbol_location *location, size_t n)
{
    (void)context;
    if (module != 0 || index >= ADDRESSES || n == 0 || n > SYMBOL_INLINE_MAX)
        abort();
    for (size_t i = 0; i < n; i++)
        if (!location[i].function || !location[i].linkage ||
            strlen(location[i].function) >= SYMBOL_TEXT_MAX ||
            (location[i].file && strlen(location[i].file) >= SYMBOL_TEXT_MAX))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("dwarf", MFD_CLOEXEC);
    if (fd < 0 || io_write(fd, data, size))
        abort();
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint64_t address[ADDRESSES];
    for (size_t i = 0; i < ADDRESSES; i++)
        address[i] = i < 128 ? 0x1000 + i * 2 : 0x400100 + (i - 128);
    struct symbol_request r = {
        .kind = SYMBOL_ELF, .path = path, .address = address, .count = ADDRESSES};
    struct symbol_result result;
    struct symbol_sink sink = {check, NULL};
    if (symbol_resolve(&r, NULL, &sink, &result, NULL) != 0)
        abort();
    close(fd);
    return 0;
}
