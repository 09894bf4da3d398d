/* Running interpreters as the tests see them: which are installed, and one opened by its pid. */
#ifndef SONDE_TEST_INTERPRETER_H
#define SONDE_TEST_INTERPRETER_H

#include <stdio.h>
#include <sys/types.h>

#include "cpython/cpython.h"

#define INTERPRETERS_MAX 32

struct interpreter_list {
    char path[INTERPRETERS_MAX][512];
    size_t count;
};

/* Every python3.x of pyenv, of the system and of SONDE_TEST_PYTHONS (paths with ':' between). */
void interpreter_list(struct interpreter_list *list);

/* A file with its symbols, mapped somewhere. */
struct interpreter_module {
    char path[512];
    uint64_t bias;
    void *elf; /* libelf's */
    int fd;
};

/* The cpython_module.symbol of a struct interpreter_module. */
bool interpreter_symbol(void *ctx, const char *name, uint64_t *address);
/* The size of a function too; for the interpreter loop's range. */
bool interpreter_symbol_size(const struct interpreter_module *module, const char *name,
                             uint64_t *address, uint64_t *size);
bool interpreter_module_open(struct interpreter_module *module, const char *path, uint64_t bias);
void interpreter_module_close(struct interpreter_module *module);

/* Opens the interpreter of a process, whichever of its modules has it; a fault of cpython_open's.
 */
int interpreter_open(pid_t pid, struct cpython *py, const struct cpython_memory *memory,
                     struct interpreter_module *module);

struct interpreter_run {
    pid_t pid;
    FILE *out; /* its standard output */
};

/* Starts `path -S script first second` (or fewer: NULL); interpreter_stop ends and reaps it. */
struct interpreter_run interpreter_start(const char *path, const char *script, const char *first,
                                         const char *second);
void interpreter_stop(struct interpreter_run *run);

/* Runs folder/script with these arguments in one interpreter after the other, and calls `check`
 * while it runs; ends it then. False if there is no interpreter. */
bool interpreter_each(const char *folder, const char *script, const char *first, const char *second,
                      void (*check)(const char *path, struct interpreter_run *run));

#endif
