/* Finding rows in a pack; see pack.h. */
#include <errno.h>
#include <string.h>

#include "unwind/pack_internal.h"
#include "unwind/rows_internal.h"

bool rows_pack_is(const struct rows_pack *pack)
{
    return pack->magic == PACK_MAGIC;
}

const struct pack_entry *rows_pack_entry(const struct rows_pack *pack, const uint8_t *id,
                                         size_t len)
{
    uint32_t count = __atomic_load_n(&pack->count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < PACK_ENTRIES; i++) {
        const struct pack_entry *e = &pack->entry[i];
        if (e->id_size == len && len <= sizeof e->id && !memcmp(e->id, id, len))
            return e;
    }
    return NULL;
}

int rows_pack_find(const struct rows_pack *pack, const uint8_t *build_id, size_t len,
                   struct rows *out)
{
    const struct pack_entry *e = rows_pack_entry(pack, build_id, len);
    memset(out, 0, sizeof *out);
    if (!e)
        return -ENODATA;
    const struct rows_layout layout = {e->rows, e->wides, e->expr_size};
    size_t size = rows_payload(&layout);
    if (e->at > ROWS_PACK_BYTES || size > ROWS_PACK_BYTES - e->at)
        return -ENODATA;
    rows_place((const char *)pack + e->at, &layout, out);
    out->base = e->base;
    out->dropped = e->dropped;
    return 0;
}
