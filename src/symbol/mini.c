/*
 * .gnu_debugdata: a whole small ELF file with only a symbol table, xz-compressed into the section
 * (Fedora and its kin strip programs down to this). Output and the decoder's memory are capped.
 */
#include "symbol/symbol_internal.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PACKED_MAX ((size_t)64 << 20)
#define UNPACKED_MAX ((size_t)256 << 20)
#define DECODER_MEMORY_MAX ((uint64_t)128 << 20)

static uint8_t *unpack(const uint8_t *packed, size_t len, size_t *out_len)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, DECODER_MEMORY_MAX, 0) != LZMA_OK)
        return NULL;
    size_t cap = len * 4 + 4096;
    uint8_t *data = memory_grow(NULL, cap, 1);
    stream.next_in = packed;
    stream.avail_in = len;
    lzma_ret ret = LZMA_OK;
    while (ret == LZMA_OK) {
        if (stream.total_out == cap) {
            if (cap >= UNPACKED_MAX)
                break;
            cap = cap * 2 < UNPACKED_MAX ? cap * 2 : UNPACKED_MAX;
            data = memory_grow(data, cap, 1);
        }
        stream.next_out = data + stream.total_out;
        stream.avail_out = cap - stream.total_out;
        ret = lzma_code(&stream, LZMA_FINISH);
    }
    *out_len = stream.total_out;
    lzma_end(&stream);
    if (ret == LZMA_STREAM_END)
        return data;
    free(data);
    return NULL;
}

struct image *mini_unpack(const struct image *image, struct error *err)
{
    size_t len = 0, size = 0;
    uint8_t *packed = image_load(image, image_find(image, ".gnu_debugdata"), PACKED_MAX, &len);
    if (!packed)
        return NULL;
    uint8_t *data = unpack(packed, len, &size);
    free(packed);
    if (data)
        return image_from_memory(data, size, image->path, err);
    error_set(err, FAULT_INPUT, "the .gnu_debugdata of %s does not unpack", image->path);
    return NULL;
}

static int mini_run(struct module *m, struct error *err)
{
    if (!m->image || !m->answers.open || !module_has(m->image, ".gnu_debugdata"))
        return 0;
    struct image *mini = mini_unpack(m->image, err);
    if (!mini)
        return FAULT_INPUT;
    if (symtab_resolve(m, mini, ".symtab"))
        m->had_symtab = true;
    image_free(mini);
    return 0;
}

const struct resolver resolver_mini = {"gnu-debugdata", SYMBOL_ELF, mini_run};
