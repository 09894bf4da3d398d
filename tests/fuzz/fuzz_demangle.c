/* Linkage names: whatever they are, the result is a terminated string within its bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1), out[SYMBOL_TEXT_MAX];
    memcpy(name, data, size);
    name[size] = '\0';
    bool mangled = symbol_demangle(name, out);
    if (strnlen(out, sizeof out) == sizeof out ||
        (!mangled && strncmp(out, name, SYMBOL_TEXT_MAX - 1) != 0))
        abort();
    free(name);
    return 0;
}
