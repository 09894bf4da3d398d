/*
 * What threads are called: threading._active leads from a thread's ident to its Thread, whose
 * attribute _name is what the program chose; see cpython.h. Where an object has its attributes:
 *
 *   to 3.10   a dict at obj + tp_dictoffset
 *   3.11      values at obj - 32, or a dict at obj - 24
 *   3.12      one word at obj - 24: a dict, or values + 1 in its place
 *   3.13      a dict at obj - 24, or values behind the object
 *
 * Values alone are in the order of the keys that the type keeps, and that a dict may share.
 */
#include "cpython/cpython.h"
#include "cpython/dict.h"
#include "cpython/memory.h"

enum {
    TYPE_BASIC_SIZE = 32, /* PyTypeObject, the same in all versions */
    TYPE_FLAGS = 168,
    TYPE_DICT_OFFSET = 288,
    TYPE_SIZE = 400, /* and what follows in a PyHeapTypeObject, the keys somewhere among it, ... */
    HEAP_TYPE_SIZE = 920, /* ... of no version is larger */
    DICT_VALUES = 40,
    FLAG_INLINE_VALUES = 1 << 2,
    FLAG_MANAGED_DICT = 1 << 4,
};

#define THREADS_MAX 4096

/* Where values lie in what points to them: 3.13 has four bytes of state before them. */
static uint64_t value_address(const struct cpython *py, uint64_t values, ssize_t index)
{
    return values + (py->minor >= 13 ? 8 : 0) + 8 * (uint64_t)index;
}

static bool from_dict(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
                      const char *name, uint64_t *value)
{
    struct dict_entries entries;
    uint64_t values;
    if (!dict_entries(py, memory, dict, &entries))
        return false;
    ssize_t at = dict_index(py, memory, &entries, name, value);
    if (at < 0)
        return false;
    if (*value)
        return true;
    return memory_word(memory, dict + DICT_VALUES, &values) && address_is_sane(values) &&
           memory_word(memory, value_address(py, values, at), value) && *value;
}

/* The table of keys is the word of the type behind which there is one that has the name. */
static bool from_values(const struct cpython *py, const struct cpython_memory *memory,
                        uint64_t type, uint64_t values, const char *name, uint64_t *value)
{
    for (uint64_t at = TYPE_SIZE; at < HEAP_TYPE_SIZE; at += 8) {
        struct dict_entries entries;
        uint64_t keys, unused;
        if (!memory_word(memory, type + at, &keys))
            return false;
        if (!dict_keys(py, memory, keys, &entries) || entries.count > 64)
            continue;
        ssize_t index = dict_index(py, memory, &entries, name, &unused);
        if (index >= 0)
            return memory_word(memory, value_address(py, values, index), value) && *value;
    }
    return false;
}

static bool attribute(const struct cpython *py, const struct cpython_memory *memory,
                      uint64_t object, const char *name, uint64_t *value)
{
    uint8_t head[TYPE_DICT_OFFSET + 8];
    uint64_t type, word = 0;
    if (!address_is_sane(object) || !memory_word(memory, object + LAYOUT_TYPE, &type) ||
        !address_is_sane(type) || !memory_read(memory, type, head, sizeof(head)))
        return false;
    uint64_t offset = word_of(head, TYPE_DICT_OFFSET), flags = word_of(head, TYPE_FLAGS);
    if (py->minor <= 10 || !(flags & FLAG_MANAGED_DICT))
        return offset && offset < 1u << 16 && memory_word(memory, object + offset, &word) &&
               from_dict(py, memory, word, name, value);
    if (!memory_word(memory, object - 24, &word))
        return false;
    if (word && !(word & 1))
        return from_dict(py, memory, word, name, value);
    if (py->minor == 11 && !memory_word(memory, object - 32, &word))
        return false;
    if (py->minor == 12)
        word += 1;
    if (py->minor >= 13)
        word = flags & FLAG_INLINE_VALUES ? object + word_of(head, TYPE_BASIC_SIZE) : 0;
    return address_is_sane(word) && from_values(py, memory, type, word, name, value);
}

/* An int of up to two digits of thirty bits. */
static bool number_of(const struct cpython *py, const struct cpython_memory *memory,
                      uint64_t object, uint64_t *number)
{
    uint8_t bytes[LAYOUT_LONG_DIGIT + 12];
    if (!address_is_sane(object) || !memory_read(memory, object, bytes, LAYOUT_LONG_DIGIT + 8))
        return false;
    uint64_t digits = word_of(bytes, LAYOUT_SIZE);
    digits = py->minor >= 12 ? digits >> 3 : digits;
    *number = half_of(bytes, LAYOUT_LONG_DIGIT);
    if (digits > 1)
        *number |= (uint64_t)half_of(bytes, LAYOUT_LONG_DIGIT + 4) << 30;
    return digits >= 1 && digits <= 2;
}

int cpython_thread_names(const struct cpython *py, const struct cpython_memory *memory,
                         uint64_t interp, void (*each)(void *ctx, uint64_t ident, const char *name),
                         void *ctx)
{
    struct dict_entries entries;
    uint64_t active;
    int fault = dict_find_global(py, memory, interp, "threading", "_active", &active);
    if (fault)
        return fault;
    if (!dict_entries(py, memory, active, &entries) || entries.count > THREADS_MAX)
        return CPYTHON_DAMAGED;
    for (uint32_t i = 0; i < entries.count; i++) {
        uint64_t key, thread, ident, name;
        char text[128];
        if (!dict_entry(memory, &entries, i, &key, &thread))
            return CPYTHON_UNREADABLE;
        if (thread && number_of(py, memory, key, &ident) &&
            attribute(py, memory, thread, "_name", &name) &&
            cpython_text(py, memory, name, text, sizeof(text)) > 0)
            each(ctx, ident, text);
    }
    return CPYTHON_OK;
}
