/* The chunked coding of a request's body, decoded as the bytes come. */
#ifndef SONDE_SERVE_CHUNKS_H
#define SONDE_SERVE_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct chunks {
    enum {
        CHUNK_SIZE,
        CHUNK_EXTENSION,
        CHUNK_SIZE_END,
        CHUNK_DATA,
        CHUNK_DATA_END,
        CHUNK_DATA_FEED,
        CHUNK_TRAILER,
        CHUNK_DONE,
        CHUNK_BAD,
    } state;
    uint64_t left;    /* of this chunk */
    unsigned digits;  /* of its size, so far */
    unsigned line;    /* bytes of this line of the trailer */
    unsigned trailer; /* bytes of extensions and trailer in all, which are bounded */
};

/* Takes from data[0..len) what belongs to the body and adds what it stands for to `out`, which
 * does not grow beyond `max` + 1 bytes. Returns how many bytes were taken: fewer than len only when
 * it is done, bad, or larger than `max`. */
size_t chunks_feed(struct chunks *c, const char *data, size_t len, size_t max, struct text *out);

#endif
