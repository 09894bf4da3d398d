/*
 * Where a module defines a name, for the few names by which an interpreter is recognised. The file
 * is read once a module; what it says is checked like everything from outside.
 */
#ifndef SONDE_ELF_NAMES_H
#define SONDE_ELF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/module.h"

struct elf_names;

/* The names in .dynsym and, with `all`, .symtab; NULL if the file cannot be read. */
struct elf_names *elf_names_read(const struct module *m, bool all);
void elf_names_free(struct elf_names *n); /* NULL-safe */

/* The address as the file has it, and how many bytes; false if it is not defined there. */
bool elf_names_find(const struct elf_names *n, const char *name, uint64_t *address, uint64_t *size);

#endif
