/*
 * Functions that the program itself defines, found by name in its file: those that are linked into
 * it are called without any table, so the loader knows nothing of them.
 */
#ifndef SONDE_AGENT_OWN_SYMBOLS_H
#define SONDE_AGENT_OWN_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct own_symbol {
    uint64_t address;
    uint64_t size;
};

/* Calls for each global function of the program, with its name. 0, or a negative errno when the
 * file has no table. Not for handlers. */
typedef void own_symbols_each(void *context, const char *name, struct own_symbol symbol);
int own_symbols_read(own_symbols_each *each, void *context);

#endif
