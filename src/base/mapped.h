/*
 * A plain file as memory, to be read without copies. Whoever owns the file may cut it short
 * meanwhile, and the kernel answers a look beyond the end with SIGBUS: such looks read zeros
 * instead, and mapped_was_cut() says so. Any thread may read.
 */
#ifndef SONDE_MAPPED_H
#define SONDE_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped {
    const uint8_t *data; /* NULL: not mapped */
    size_t size;
    int slot;
    size_t gone; /* bytes in front whose pages were let go */
};

/* The first `size` bytes of the file. False if it cannot be had this way: read it instead. */
bool mapped_open(struct mapped *m, int fd, size_t size);
/*
 * Reading goes on at `offset`: what lies far behind is let go (it can still be read, and comes
 * back), so that a file of any size takes little memory. What comes next is left to the kernel's
 * own reading ahead: bringing it in beforehand costs more where only a part of each page is looked
 * at, and gains nothing.
 */
void mapped_pass(struct mapped *m, size_t offset);
/* Did anybody look beyond the end that the file has now? */
bool mapped_was_cut(const struct mapped *m);
void mapped_close(struct mapped *m); /* NULL data is fine */

#endif
