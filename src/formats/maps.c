/* Mappings as text; see maps.h. */
#include "formats/maps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/rows.h"

int maps_open(const char *path, const uint8_t *build_id, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    uint8_t own[ROWS_BUILD_ID_MAX];
    if (fd < 0)
        return -1;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (good && len)
        good = rows_read_build_id(fd, own) >= (int)len && !memcmp(own, build_id, len);
    if (good)
        return fd;
    close(fd);
    return -1;
}

uint64_t maps_bias(const char *path, const uint8_t *build_id, size_t len, uint64_t start,
                   uint64_t offset)
{
    uint64_t bias = start - offset;
    int fd = maps_open(path, build_id, len);
    if (fd >= 0 && rows_read_bias(fd, start, offset, &bias))
        bias = start - offset;
    if (fd >= 0)
        close(fd);
    return bias;
}

/* "START-END PERMS OFFSET DEVICE INODE  PATH", numbers in hex: what is behind END, or NULL. */
static char *parse_range(const char *line, struct range *e)
{
    char *at;
    *e = (struct range){.start = strtoull(line + strspn(line, " \t"), &at, 16)};
    if (*at != '-')
        return NULL;
    e->end = strtoull(at + 1, &at, 16);
    return *at == ' ' && e->end > e->start ? at : NULL;
}

void maps_end(const char *line, uint64_t *end)
{
    struct range e;
    if (parse_range(line, &e))
        *end = e.end;
}

int maps_line(struct ranges *m, struct import *im, const char *line, struct error *err)
{
    struct range e;
    char *at = parse_range(line, &e);
    if (!at)
        return 0;
    const char *permissions = at + strspn(at, " ");
    size_t len = strcspn(permissions, " ");
    if (len < 3 || permissions[2] != 'x')
        return 0;
    uint64_t offset = strtoull(permissions + len, &at, 16);
    at += strspn(at, " ");
    for (int i = 0; i < 2; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    const char *path = at;
    e.number = import_module(im, path);
    if (e.number == PROFILE_NONE || m->all.len >= IMPORT_MODULES_MAX)
        return import_too_many(im, "mappings", IMPORT_MODULES_MAX, err);
    e.bias = *path == '/'              ? maps_bias(path, NULL, 0, e.start, offset)
             : !strcmp(path, "[vdso]") ? e.start
                                       : 0;
    ranges_put(m, &e);
    return 0;
}

uint32_t maps_frame(const struct ranges *m, struct import *im, uint64_t address)
{
    const struct range *at = ranges_find(m, address);
    if (at)
        return profile_frame_add(im->profile, at->number, address - at->bias);
    uint32_t unknown = import_module(im, "");
    return profile_frame_add(im->profile, unknown == PROFILE_NONE ? 0 : unknown, address);
}
