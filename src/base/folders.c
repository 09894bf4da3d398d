/* Folders of our own; see folders.h. */
#include "base/folders.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/io.h"

#define UNIQUE "XXXXXX" /* what the C library puts its letters in place of */

const char *temporary_root(void)
{
    const char *folder = secure_getenv("TMPDIR");
    return folder && *folder == '/' ? folder : "/tmp";
}

int temporary_folder(const char *name, struct text *path, struct error *err)
{
    text_format(path, "%s/sonde-%s-" UNIQUE, temporary_root(), name);
    if (mkdtemp(path->data))
        return 0;
    int rc = error_errno(err, FAULT_SYSTEM, "cannot make the folder %s", path->data);
    text_clear(path);
    return rc;
}

int temporary_file(struct text *path)
{
    text_add(path, "." UNIQUE);
    return mkostemp(path->data, O_CLOEXEC);
}

bool cache_folder(const char *name, struct text *path)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        text_format(path, "%s/sonde/%s", cache, name);
    else if (home && *home == '/')
        text_format(path, "%s/.cache/sonde/%s", home, name);
    else
        return false;
    return io_make_folders(path->data, NULL) == 0;
}
