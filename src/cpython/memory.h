/* Reading single things through a struct cpython_memory; never leaves the room. */
#ifndef SONDE_CPYTHON_MEMORY_H
#define SONDE_CPYTHON_MEMORY_H

#include "cpython/cpython.h"

/* Whether this process can read [address, address + size). */
bool memory_is_readable(const struct cpython_memory *memory, uint64_t address, size_t size);
/* The same, without trusting what was found before. */
bool memory_probe(const struct cpython_memory *memory, uint64_t address, size_t size);

bool memory_read(const struct cpython_memory *memory, uint64_t address, void *to, size_t size);

/* All or nothing. */
bool memory_read_pieces(const struct cpython_memory *memory, const struct cpython_piece *piece,
                        size_t count);

static inline bool memory_word(const struct cpython_memory *memory, uint64_t address,
                               uint64_t *word)
{
    return memory_read(memory, address, word, sizeof(*word));
}

static inline uint64_t word_of(const uint8_t *bytes, uint32_t offset)
{
    uint64_t word;
    __builtin_memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

static inline uint32_t half_of(const uint8_t *bytes, uint32_t offset)
{
    uint32_t half;
    __builtin_memcpy(&half, bytes + offset, sizeof(half));
    return half;
}

/* No object of Python's lies elsewhere: not in the first page, not in the kernel's half, aligned.
 */
static inline bool address_is_sane(uint64_t address)
{
    return address >= 4096 && address < 1ull << 56 && !(address & 7);
}

/* Going along a chain of pointers that may lead back to itself. Zeroed at first. */
struct chain {
    uint64_t mark; /* an address seen before, to meet again in a cycle */
    uint32_t steps, turn;
};

#define CHAIN_MAX (1u << 20) /* nothing of CPython's is longer */

/* Brent's way: the mark moves on at each power of two, so a cycle meets it within three times its
 * length. */
static inline bool chain_is_endless(struct chain *c, uint64_t address)
{
    if ((address == c->mark && c->steps) || c->steps == CHAIN_MAX)
        return true;
    if (c->steps++ == c->turn) {
        c->turn = 2 * c->turn + 1;
        c->mark = address;
    }
    return false;
}

/* Whether the object type at `type` is the one at `known`, or is called so: a program that was
 * linked against libpython may have the original in itself. */
bool memory_type_is(const struct cpython_memory *memory, uint64_t type, uint64_t known,
                    const char *name);

#endif
