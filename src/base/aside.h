/*
 * Bytes put aside, to be read again in any order: the first few in memory, the
 * rest in a file without a name in TMPDIR (/tmp if unset), so that what is put aside may be
 * larger than memory. Where no such file can be made or the disk is full, memory holds it all.
 */
#ifndef SONDE_ASIDE_H
#define SONDE_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aside {
    uint8_t *data; /* what is not in the file */
    size_t len, cap;
    uint64_t filed; /* bytes in the file, all before `data` */
    int fd;         /* the file plus one, 0: none yet, -1: none to be had */
};

/* A zeroed struct is an empty one. */
void aside_release(struct aside *s);
/* Appends and returns the place to read from. */
uint64_t aside_add(struct aside *s, const void *data, size_t len);
/* False if the file could not be read. */
bool aside_read(const struct aside *s, uint64_t at, void *data, size_t len);

#endif
