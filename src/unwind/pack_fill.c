/* Making a pack and filling it, which the collector alone does; see pack.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/pack_internal.h"

int rows_pack_make(struct rows_pack **out)
{
    int fd = memfd_create("sonde-rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    void *at = MAP_FAILED;
    if (ftruncate(fd, (off_t)ROWS_PACK_BYTES) == 0)
        at = mmap(NULL, ROWS_PACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    /* From here on there is no other way to write to it than this mapping. */
    if (at == MAP_FAILED ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)) {
        int rc = -errno;
        if (at != MAP_FAILED)
            munmap(at, ROWS_PACK_BYTES);
        close(fd);
        return rc;
    }
    *out = at;
    (*out)->used = (sizeof **out + 63) & ~63ull;
    (*out)->magic = PACK_MAGIC;
    return fd;
}

void rows_pack_add(struct rows_pack *pack, const uint8_t *build_id, size_t len, struct rows *rows)
{
    size_t size = (rows->mapping_size + 63) & ~(size_t)63;
    if (!rows->count || !len || len > ROWS_BUILD_ID_MAX || pack->count == PACK_ENTRIES ||
        size > ROWS_PACK_BYTES - pack->used || rows_pack_entry(pack, build_id, len))
        return;
    struct pack_entry *e = &pack->entry[pack->count];
    *e = (struct pack_entry){.at = pack->used,
                             .base = rows->base,
                             .rows = rows->count,
                             .wides = rows->wide_count,
                             .expr_size = rows->expr_size,
                             .dropped = rows->dropped,
                             .id_size = (uint32_t)len};
    memcpy(e->id, build_id, len);
    memcpy((char *)pack + e->at, rows->mapping, rows->mapping_size);
    pack->used += size;
    __atomic_store_n(&pack->count, pack->count + 1, __ATOMIC_RELEASE);
    rows_release(rows);
    rows_pack_find(pack, build_id, len, rows);
}
