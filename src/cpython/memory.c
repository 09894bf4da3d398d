/*
 * This process's own memory, read where it lies once it is known to be there; see cpython.h. Asking
 * the kernel takes hundreds of nanoseconds, so the answer is kept, page by page.
 */
#include "cpython/memory.h"

#include <string.h>

#define PAGE 4096u
#define WALKS_TRUSTED 4096 /* then all pages are asked for again */

void cpython_memory_local(struct cpython_memory *memory, struct cpython_pages *pages,
                          bool (*probe)(uint64_t address), uint64_t low, uint64_t high)
{
    if (++pages->walks >= WALKS_TRUSTED)
        memset(pages, 0, sizeof(*pages));
    *memory = (struct cpython_memory){
        .pages = pages, .probe = probe, .stack_low = low, .stack_high = high};
}

/* Each page has two places, which it shares with every 128th; the newer comes first. */
static bool page_is_known(const struct cpython_memory *memory, uint64_t page)
{
    struct cpython_pages *pages = memory->pages;
    uint64_t *place = &pages->page[page % (CPYTHON_PAGES / 2) * 2];
    if (place[0] == page || place[1] == page)
        return true;
    if (!memory->probe(page * PAGE))
        return false;
    place[1] = place[0];
    place[0] = page;
    return true;
}

bool memory_probe(const struct cpython_memory *memory, uint64_t address, size_t size)
{
    uint64_t last = (address + size - 1) / PAGE;
    for (uint64_t page = address / PAGE; page <= last; page++) {
        if (!memory->probe(page * PAGE))
            return false;
    }
    return true;
}

bool memory_is_readable(const struct cpython_memory *memory, uint64_t address, size_t size)
{
    if (!size || address + size < address)
        return false;
    if (address >= memory->stack_low && address + size <= memory->stack_high)
        return true;
    uint64_t last = (address + size - 1) / PAGE;
    for (uint64_t page = address / PAGE; page <= last; page++) {
        if (!page_is_known(memory, page))
            return false;
    }
    return true;
}

bool memory_read_pieces(const struct cpython_memory *memory, const struct cpython_piece *piece,
                        size_t count)
{
    if (memory->read)
        return memory->read(memory->ctx, piece, count) == count;
    for (size_t i = 0; i < count; i++) {
        if (!memory_is_readable(memory, piece[i].address, piece[i].size))
            return false;
        memcpy(piece[i].to, (const void *)piece[i].address, piece[i].size);
    }
    return true;
}

bool memory_read(const struct cpython_memory *memory, uint64_t address, void *to, size_t size)
{
    const struct cpython_piece piece = {address, to, size};
    return memory_read_pieces(memory, &piece, 1);
}

bool memory_type_is(const struct cpython_memory *memory, uint64_t type, uint64_t known,
                    const char *name)
{
    char found[16];
    uint64_t at;
    size_t size = strlen(name) + 1;
    if (type == known && known)
        return true;
    return size <= sizeof(found) && address_is_sane(type) &&
           memory_word(memory, type + LAYOUT_TYPE_NAME, &at) &&
           memory_read(memory, at, found, size) && !memcmp(found, name, size);
}
