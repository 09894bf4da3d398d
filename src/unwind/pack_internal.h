/* The layout of a pack: its entries, then what they stand for. */
#ifndef SONDE_UNWIND_PACK_INTERNAL_H
#define SONDE_UNWIND_PACK_INTERNAL_H

#include "unwind/pack.h"

#define PACK_MAGIC 0x316b63617077726full /* "orwpack1" */
#define PACK_ENTRIES 1024u

struct pack_entry {
    uint64_t at; /* from the pack's beginning */
    uint64_t base;
    uint32_t rows, wides, expr_size, dropped;
    uint32_t id_size;
    uint8_t id[ROWS_BUILD_ID_MAX];
};

struct rows_pack {
    uint64_t magic;
    uint64_t used;  /* bytes */
    uint32_t count; /* of entries that are whole */
    struct pack_entry entry[PACK_ENTRIES];
};

/* The entry of a build-id, or NULL. */
const struct pack_entry *rows_pack_entry(const struct rows_pack *pack, const uint8_t *id,
                                         size_t len);

#endif
