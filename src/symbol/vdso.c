/* The vdso: the kernel maps the same image into every process, so our own copy has the names. */
#include "symbol/symbol_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/text.h"

#define MAPS_MAX ((size_t)64 << 20)
#define VDSO_MAX ((size_t)1 << 20)

/* The mapping that begins where the kernel says the vdso is. */
static size_t mapped_size(uint64_t start)
{
    char *maps;
    size_t size = 0;
    if (io_slurp("/proc/self/maps", MAPS_MAX, &maps, NULL, NULL) < 0)
        return 0;
    for (char *line = maps; line && !size; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *end;
        uint64_t from = strtoull(line, &end, 16);
        if (*end == '-' && from == start)
            size = strtoull(end + 1, NULL, 16) - start;
    }
    free(maps);
    return size;
}

struct image *vdso_image(struct error *err)
{
    uint64_t start = getauxval(AT_SYSINFO_EHDR);
    size_t size = start ? mapped_size(start) : 0;
    if (size == 0 || size > VDSO_MAX) {
        error_set(err, FAULT_MISSING, "this process has no vdso to read names from");
        return NULL;
    }
    return image_from_memory(memory_dup((const void *)(uintptr_t)start, size), size, "[vdso]", err);
}

static int vdso_run(struct module *m, struct error *err)
{
    struct image *image = vdso_image(err);
    if (!image) {
        module_set_status(m, SYMBOL_NOT_FOUND, "this process has no vdso to read names from");
        return FAULT_MISSING;
    }
    if (m->request->build_id_len && image->build_id_len &&
        !image_is(image, m->request->build_id, m->request->build_id_len)) {
        module_set_status(m, SYMBOL_MISMATCH, "the vdso is another kernel's: no names for it");
    } else {
        symtab_resolve(m, image, ".symtab");
        symtab_resolve(m, image, ".dynsym");
        m->had_symtab = true;
    }
    image_free(image);
    return 0;
}

const struct resolver resolver_vdso = {"vdso", SYMBOL_VDSO, vdso_run};
