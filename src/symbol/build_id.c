/* Separate debug files by build-id: /usr/lib/debug/.build-id/ab/cdef….debug, in the root, then
 * here. */
#include "symbol/symbol_internal.h"

#include <string.h>

#include "base/text.h"

static void id_path(struct text *t, const uint8_t *id, size_t len)
{
    text_format(t, "/usr/lib/debug/.build-id/%02x/", id[0]);
    for (size_t i = 1; i < len; i++)
        text_format(t, "%02x", id[i]);
    text_add(t, ".debug");
}

bool debug_file_try(struct module *m, const char *root, const char *path)
{
    struct image *image = image_open(root, path, NULL);
    if (image && module_has(image, ".debug_info") &&
        (!m->build_id_len || image_is(image, m->build_id, m->build_id_len))) {
        m->debug = image;
        return true;
    }
    image_free(image);
    return false;
}

static int build_id_run(struct module *m, struct error *err)
{
    (void)err;
    if (m->debug || m->build_id_len < 2 || m->options->no_debug_info ||
        (m->image && module_has(m->image, ".debug_info")))
        return 0;
    struct text path = TEXT_INIT;
    id_path(&path, m->build_id, m->build_id_len);
    if (!debug_file_try(m, m->request->root, path.data) && m->request->root)
        debug_file_try(m, NULL, path.data);
    text_release(&path);
    return 0;
}

const struct resolver resolver_build_id = {"build-id", SYMBOL_ELF, build_id_run};
