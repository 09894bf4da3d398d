/*
 * Separate debug files by the name in .gnu_debuglink: beside the file, in .debug/ beside it, and
 * in the same folder below /usr/lib/debug. Without build-ids to compare, the file's CRC must be
 * the one that the link gives.
 */
#include "symbol/symbol_internal.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/text.h"

#define LINK_MAX 4096
#define CHUNK (1u << 20)

struct link {
    char *name;
    uint32_t crc;
};

/* The name, its NUL, padding to 4, and the CRC. */
static bool read_link(const struct image *image, struct link *link)
{
    size_t len = 0;
    char *data = (char *)image_load(image, image_find(image, ".gnu_debuglink"), LINK_MAX, &len);
    if (!data)
        return false;
    size_t name = strnlen(data, len), at = (name + 4) & ~(size_t)3;
    if (name == 0 || at + 4 > len || strchr(data, '/')) {
        free(data);
        return false;
    }
    memcpy(&link->crc, data + at, 4);
    link->name = data;
    return true;
}

static bool crc_fits(const struct image *image, uint32_t want)
{
    uint8_t *chunk = memory_grow(NULL, CHUNK, 1);
    uLong crc = crc32(0, NULL, 0);
    uint64_t at = 0;
    while (at < image->size) {
        size_t len = image->size - at < CHUNK ? image->size - at : CHUNK;
        if (!image_read(image, at, chunk, len))
            break;
        crc = crc32(crc, chunk, (uInt)len);
        at += len;
    }
    free(chunk);
    return at == image->size && (uint32_t)crc == want;
}

static bool try_link(struct module *m, const struct link *link, const char *folder,
                     const char *before, const char *between)
{
    struct text path = TEXT_INIT;
    text_format(&path, "%s%s%s%s", before, folder, between, link->name);
    bool found =
        strcmp(path.data, m->request->path) != 0 && debug_file_try(m, m->request->root, path.data);
    if (found && !m->build_id_len && !crc_fits(m->debug, link->crc)) {
        image_free(m->debug);
        m->debug = NULL;
        found = false;
    }
    text_release(&path);
    return found;
}

static int debug_link_run(struct module *m, struct error *err)
{
    (void)err;
    struct link link;
    if (m->debug || !m->image || m->options->no_debug_info || module_has(m->image, ".debug_info") ||
        !read_link(m->image, &link))
        return 0;
    const char *slash = strrchr(m->image->path, '/');
    char *folder = slash ? memory_strndup(m->image->path, (size_t)(slash - m->image->path) + 1)
                         : memory_strdup("");
    if (!try_link(m, &link, folder, "", "") && !try_link(m, &link, folder, "", ".debug/"))
        try_link(m, &link, folder, "/usr/lib/debug", "");
    free(folder);
    free(link.name);
    return 0;
}

const struct resolver resolver_debug_link = {"debug-link", SYMBOL_ELF, debug_link_run};
