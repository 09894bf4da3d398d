/* ELF files through our own reader alone: symbol tables, mini debug info, PLT stubs, build-ids. */
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
    if (module != 0 || index >= ADDRESSES || n != 1 || !location->function[0])
        abort();
    ++*(size_t *)context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    if (fd < 0 || io_write(fd, data, size))
        abort();
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint64_t address[ADDRESSES];
    for (size_t i = 0; i < ADDRESSES; i++)
        address[i] = i < 128 ? 0x200 + i * 4 : 0x400100 + (i - 128) * 4;
    struct symbol_request r = {
        .kind = SYMBOL_ELF, .path = path, .address = address, .count = ADDRESSES};
    struct symbol_options o = {.no_debug_info = true, .no_demangle = true};
    struct symbol_result result;
    size_t answers = 0;
    struct symbol_sink sink = {check, &answers};
    if (symbol_resolve(&r, &o, &sink, &result, NULL) != 0 || answers != result.resolved)
        abort();
    uint8_t id[64];
    if (symbol_build_id(NULL, path, id, sizeof id, NULL) > 64)
        abort();
    close(fd);
    return 0;
}
