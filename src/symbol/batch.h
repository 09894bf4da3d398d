/*
 * Many addresses of many modules at once: gathers them in any order, asks for each module
 * sorted, in child processes, and hands every answer back with the number that came with its
 * address.
 */
#ifndef SONDE_SYMBOL_BATCH_H
#define SONDE_SYMBOL_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/symbol.h"

struct symbol_batch;

/* `modules` requests to be filled by symbol_batch_module, all of SYMBOL_OTHER at first. */
struct symbol_batch *symbol_batch_new(size_t modules);
/* Where to look for a module: kind, path, root, build-id and pid of `request`, which stay the
 * caller's; addresses and count are not looked at. `fd`: the file itself, asked when its path leads
 * nowhere, or -1. */
void symbol_batch_module(struct symbol_batch *b, size_t module,
                         const struct symbol_request *request, int fd);
void symbol_batch_add(struct symbol_batch *b, size_t module, uint64_t address, uint32_t number);
size_t symbol_batch_count(const struct symbol_batch *b);

typedef void symbol_batch_emit(void *context, size_t module, uint32_t number,
                               const struct symbol_location *at, size_t n);

int symbol_batch_run(struct symbol_batch *b, const struct symbol_options *options,
                     symbol_batch_emit *emit, void *context, struct error *err);
/* After the run; NULL if nothing was asked of the module. */
const struct symbol_result *symbol_batch_result(const struct symbol_batch *b, size_t module);
void symbol_batch_free(struct symbol_batch *b);

#endif
