/*
 * The kernel's symbols at rest: to read them from /proc/kallsyms takes the kernel 50 ms each time.
 * They hold for one boot and one set of modules, which name the file; a copy is used only if it
 * covers every address that is asked for, so that what comes and goes without a trace in
 * /proc/modules (programs of BPF, trampolines) is always read afresh.
 *
 * The file is text: a line `START END` (hexadecimal) for each stretch that it covers, the core
 * kernel's code first; a line `=ADDRESS OFFSET` for each part of that code's symbols, which are
 * sorted; an empty line, then lines as in /proc/kallsyms.
 */
#ifndef SONDE_SYMBOL_KERNEL_CACHE_H
#define SONDE_SYMBOL_KERNEL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A descriptor, at the first symbol, of a copy that covers all the addresses; the copy is made if
 * there is none. -1 if that cannot be: then the kernel is to be asked.
 */
int kernel_cache_open(const uint64_t *address, size_t count);

/* Makes a copy from texts as in /proc/kallsyms and /proc/modules. -1 if they hide addresses. */
int kernel_cache_write(int fd, const char *symbols, size_t len, const char *modules);
/* Gives those parts, in their order, that hold the symbols nearest below the addresses, which are
 * sorted: whole lines. False if some are not the core kernel's or the copy has no index. */
typedef void kernel_cache_take(void *context, const char *lines, size_t len);
bool kernel_cache_parts(int fd, const uint64_t *address, size_t count, kernel_cache_take *take,
                        void *context);
/* Whether the copy covers the addresses; leaves it at the first symbol. */
int kernel_cache_covers(int fd, const uint64_t *address, size_t count);

#endif
