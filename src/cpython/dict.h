/* Python's dict objects, and what is found through them; never leaves the room. */
#ifndef SONDE_CPYTHON_DICT_H
#define SONDE_CPYTHON_DICT_H

#include "cpython/cpython.h"

/* The entries of a dict, in the order they were made; unused ones have a zero value. */
struct dict_entries {
    uint64_t at;
    uint32_t count, stride; /* stride: hash, key, value or key, value */
};

bool dict_entries(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
                  struct dict_entries *out);
/* ... of a table of keys, which several dicts may share. */
bool dict_keys(const struct cpython *py, const struct cpython_memory *memory, uint64_t keys,
               struct dict_entries *out);
bool dict_entry(const struct cpython_memory *memory, const struct dict_entries *entries, uint32_t i,
                uint64_t *key, uint64_t *value);

/* Which entry has this ASCII key: its index, or a fault. *value may be 0: then it is elsewhere. */
ssize_t dict_index(const struct cpython *py, const struct cpython_memory *memory,
                   const struct dict_entries *entries, const char *name, uint64_t *value);

/* The value of an ASCII key in a dict. */
int dict_find(const struct cpython *py, const struct cpython_memory *memory, uint64_t dict,
              const char *name, uint64_t *value);

/* A global variable of a module. */
int dict_find_global(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                     const char *module, const char *name, uint64_t *value);

#endif
