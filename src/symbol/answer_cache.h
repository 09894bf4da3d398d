/*
 * Answers at rest. To find a few names in the C library takes 50 ms, nearly all of it for unpacking
 * debug information; the answers hold as long as the files do that they came from. A file of the
 * cache is for one module, one debug file (both as they are now) and one way of asking; it is used
 * only if it knows every address that is asked for.
 *
 *     magic, count (u64) | count addresses (u64, ascending) | answers, then the result, as on the
 * wire
 *
 * An answer's index is that of its address; an address without an answer has no name.
 */
#ifndef SONDE_SYMBOL_ANSWER_CACHE_H
#define SONDE_SYMBOL_ANSWER_CACHE_H

#include "symbol/symbol_internal.h"

/* Fills in all answers and the result; false if something is missing: then nothing is changed. */
bool answer_cache_load(struct module *m);
/* Keeps the answers of a module, now that they are whole, beside those of before. */
void answer_cache_store(struct module *m);

#endif
