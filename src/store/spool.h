/*
 * Parts that wait on disk for a server or an engine that is away: a folder with a file a part,
 * oldest first by name. A part is there as a whole and for good when spool_put returns, and is
 * removed when whoever sent it says so; sent twice it does no harm, since a batch has its key.
 * Several processes may share a folder. A spool is for one thread; spool_measure for any.
 */
#ifndef SONDE_SPOOL_H
#define SONDE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct spool;

/* Makes the folder if need be (mode 0700). `max` bytes are the bound for all parts together. */
int spool_open(const char *folder, uint64_t max, struct spool **out, struct error *err);
void spool_free(struct spool *s);

struct spool_piece {
    const void *data;
    size_t len;
};

/* The pieces one after the other as one part. FAULT_LIMIT if there is no room. */
int spool_put(struct spool *s, const char *key, const struct spool_piece *pieces, size_t count,
              struct error *err);

/* The oldest part after `after` (NULL: of all): 1 with its name and content, which the caller
 * frees, or 0. Parts that cannot be read are skipped. */
int spool_next(struct spool *s, const char *after, char **name, char **data, size_t *len,
               struct error *err);
void spool_remove(struct spool *s, const char *name);

/* Parts and their bytes, as the folder has them now. */
void spool_measure(struct spool *s, uint64_t *parts, uint64_t *bytes);

#endif
