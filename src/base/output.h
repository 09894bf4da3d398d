/*
 * Where a command writes what `-o` names, by one rule for all of them:
 *
 *     -, /dev/stdout, /dev/fd/N    the descriptor that is open there already
 *     a pipe, a character device   is written to as it is
 *     any other name               is a file, which appears when it is whole, or not at all
 *
 * Symbolic links, folders and disks are refused: nothing is written through or over them.
 */
#ifndef SONDE_OUTPUT_H
#define SONDE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct output {
    int fd;
    char *path;      /* NULL: standard output */
    char *temporary; /* NULL: a stream */
    bool replace;
    bool abandoned; /* its reader has gone, which is nobody's fault */
};

/* Does that name stand for something to be written to as it is? */
bool output_is_stream(const char *path);
/* Opens. A file that is there already is FAULT_SYSTEM unless `replace`, and then keeps its mode; a
 * fresh one has `mode`, less what the umask forbids. A pipe waits for its reader. */
int output_open(struct output *o, const char *path, bool replace, mode_t mode, struct error *err);
/* 0, or -1 with errno. */
int output_write(struct output *o, const void *data, size_t len);
/* The sentence for a write that failed. */
int output_failed(const struct output *o, struct error *err);
/* Closes and releases. With `keep` the file gets its name; else nothing is left of it. */
int output_close(struct output *o, bool keep, struct error *err);

#endif
