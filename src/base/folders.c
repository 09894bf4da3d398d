/* Folders of our own; see folders.h. */
#include "base/folders.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

/* What the C library puts letters of its choice in place of. */
static void add_unique(struct text *path)
{
    text_add_repeat(path, 'X', 6);
}

const char *temporary_root(void)
{
    const char *folder = secure_getenv("TMPDIR");
    return folder && *folder == '/' ? folder : "/tmp";
}

int temporary_folder(const char *name, struct text *path, struct error *err)
{
    text_format(path, "%s/sonde-%s-", temporary_root(), name);
    add_unique(path);
    if (mkdtemp(path->data))
        return 0;
    int rc = error_errno(err, FAULT_SYSTEM, "cannot make the folder %s", path->data);
    text_clear(path);
    return rc;
}

int temporary_file(struct text *path)
{
    text_add_char(path, '.');
    add_unique(path);
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

int cache_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
                    st.st_mode & (S_IWGRP | S_IWOTH))) {
        close(fd);
        fd = -1;
    }
    return fd;
}
