/*
 * Opens files as a process inside another root saw them. Absolute links inside the root stay inside
 * it, ".." cannot leave it, and only regular files are opened: a FIFO planted at a debug file's
 * place must not hang the reader.
 */
#ifndef SONDE_SYMBOL_ROOTED_H
#define SONDE_SYMBOL_ROOTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor for reading, or -1 with errno. `root` may be NULL. */
int rooted_open(const char *root, const char *path);

/* The same, but the last component may not be a symbolic link (for world-writable folders). */
int rooted_open_nofollow(const char *root, const char *path);

/* All of an open file, at most `max` bytes (EFBIG), NUL-terminated; NULL with errno. The caller
 * frees. The descriptor's position is used, so /proc files work. */
char *rooted_slurp(int fd, size_t max, size_t *len);

#endif
