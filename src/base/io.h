/* Whole reads and writes on descriptors; EINTR and short counts are handled here. */
#ifndef SONDE_IO_H
#define SONDE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Bytes read (fewer than len only at the end of the file), or -1 with errno. */
ssize_t io_read(int fd, void *data, size_t len);
ssize_t io_pread(int fd, void *data, size_t len, uint64_t offset);
/* 0, or -1 with errno; nothing is known about how much was written then. */
int io_write(int fd, const void *data, size_t len);

/* The whole file, NUL-terminated, at most `max` bytes (more is FAULT_LIMIT). Works for /proc files,
 * whose size is not known beforehand. The caller frees *data; *len may be NULL. */
int io_slurp(const char *path, size_t max, char **data, size_t *len, struct error *err);

/* Makes every missing folder of `path` (mode 0700). */
int io_make_folders(const char *path, struct error *err);

#endif
