/*
 * Rows that one process has read and many use: a file in memory that the collector fills and agents
 * map, so that the hundredth compiler of a build need not read a copy of its own. Entries are only
 * ever added, and seen when they are whole.
 */
#ifndef SONDE_UNWIND_PACK_H
#define SONDE_UNWIND_PACK_H

#include "unwind/rows.h"

#define ROWS_PACK_BYTES ((size_t)1 << 30) /* of addresses; memory only for what is in it */

struct rows_pack;

/* Makes one; its descriptor, sealed but for who made it, and *out its mapping. A negative errno. */
int rows_pack_make(struct rows_pack **out);

/* Moves rows into the pack: *rows points there afterwards, and must not be used longer than that.
 * Without room, or with an entry of that build-id, *rows is as it was. */
void rows_pack_add(struct rows_pack *pack, const uint8_t *build_id, size_t len, struct rows *rows);

/* Rows that stay the pack's: rows_release leaves them alone. -ENODATA if there are none, or what is
 * there cannot be. */
int rows_pack_find(const struct rows_pack *pack, const uint8_t *build_id, size_t len,
                   struct rows *out);

/* Whether a mapping of ROWS_PACK_BYTES is a pack. */
bool rows_pack_is(const struct rows_pack *pack);

#endif
