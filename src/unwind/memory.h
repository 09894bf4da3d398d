/* Reading a word of the unwound stack: from the copied window, else through the callback. */
#ifndef SONDE_UNWIND_MEMORY_H
#define SONDE_UNWIND_MEMORY_H

#include <stdbool.h>
#include <string.h>

#include "unwind/walk.h"

static inline bool memory_word(const struct unwind_memory *memory, uint64_t address, uint64_t *word)
{
    uint64_t offset = address - memory->start;
    if (memory->size >= sizeof(*word) && address >= memory->start &&
        offset <= memory->size - sizeof(*word)) {
        memcpy(word, (const char *)memory->data + offset, sizeof(*word));
        return true;
    }
    return memory->read && memory->read(memory->ctx, address, word) == 0;
}

#endif
