/* See dict.h. */
#include "cpython/dict.h"

#include <string.h>

#include "cpython/memory.h"
#include "cpython/text.h"

#define ENTRIES_MAX (1u << 16)

static unsigned index_width(uint64_t slots)
{
    return slots <= 0xff ? 1 : slots <= 0xffff ? 2 : 4;
}

bool dict_keys(const struct cpython *py, const struct cpython_memory *memory, uint64_t keys,
               struct dict_entries *out)
{
    const struct layout_dict *d = &py->layout.dict;
    uint8_t head[40];
    uint64_t used;
    if (!address_is_sane(keys) || !memory_read(memory, keys, head, d->indices))
        return false;
    used = word_of(head, d->used);
    out->stride = 24;
    if (d->size_is_log2) {
        if (head[d->log2_index] > 24)
            return false;
        out->at = keys + d->indices + (1ull << head[d->log2_index]);
        out->stride = head[d->kind] ? 16 : 24;
    } else {
        uint64_t slots = word_of(head, d->size);
        if (slots > ENTRIES_MAX * 4ull)
            return false;
        out->at = keys + d->indices + slots * index_width(slots);
    }
    out->count = (uint32_t)used;
    return used <= ENTRIES_MAX;
}

bool dict_entries(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
                  struct dict_entries *out)
{
    uint64_t keys;
    return address_is_sane(dict) && memory_word(memory, dict + py->layout.dict.keys, &keys) &&
           dict_keys(py, memory, keys, out);
}

bool dict_entry(const struct cpython_memory *memory, const struct dict_entries *entries, uint32_t i,
                uint64_t *key, uint64_t *value)
{
    uint8_t bytes[24];
    if (!memory_read(memory, entries->at + (uint64_t)i * entries->stride, bytes, entries->stride))
        return false;
    *key = word_of(bytes, entries->stride - 16);
    *value = word_of(bytes, entries->stride - 8);
    return true;
}

static bool key_is(const struct cpython *py, const struct cpython_memory *memory, uint64_t key,
                   const char *name, size_t length)
{
    uint8_t head[TEXT_HEAD];
    struct text_place place;
    char text[32];
    return address_is_sane(key) && length <= sizeof(text) &&
           memory_read(memory, key, head, sizeof(head)) &&
           word_of(head, LAYOUT_TEXT_LENGTH) == length &&
           text_place(py, memory, key, head, &place) && place.width == 1 &&
           memory_read(memory, place.address, text, length) && !memcmp(text, name, length);
}

ssize_t dict_index(const struct cpython *py, const struct cpython_memory *memory,
                   const struct dict_entries *entries, const char *name, uint64_t *value)
{
    size_t length = strlen(name);
    for (uint32_t i = 0; i < entries->count; i++) {
        uint64_t key;
        if (!dict_entry(memory, entries, i, &key, value))
            return CPYTHON_UNREADABLE;
        if (key_is(py, memory, key, name, length))
            return (ssize_t)i;
    }
    return CPYTHON_ABSENT;
}

int dict_find(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
              const char *name, uint64_t *value)
{
    struct dict_entries entries;
    if (!dict_entries(py, memory, dict, &entries))
        return CPYTHON_DAMAGED;
    ssize_t at = dict_index(py, memory, &entries, name, value);
    return at < 0 ? (int)at : *value ? CPYTHON_OK : CPYTHON_ABSENT;
}

int dict_find_global(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                     const char *module, const char *name, uint64_t *value)
{
    uint64_t modules, object, dict;
    if (!address_is_sane(interp) ||
        !memory_word(memory, interp + py->layout.interp_modules, &modules))
        return CPYTHON_UNREADABLE;
    if (!modules)
        return CPYTHON_ABSENT;
    int fault = dict_find(py, memory, modules, module, &object);
    if (fault)
        return fault;
    if (!address_is_sane(object) || !memory_word(memory, object + LAYOUT_MODULE_DICT, &dict))
        return CPYTHON_UNREADABLE;
    return dict_find(py, memory, dict, name, value);
}
