/* The kernel's type information; see btf.h. */
#include "capture/btf.h"

#include <inttypes.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vector.h"

#define SIZE_MAX_READ (64u << 20)
#define DEPTH_MAX 8

struct types {
    const uint8_t *types;
    size_t types_len;
    const char *strings;
    size_t strings_len;
    VECTOR(uint32_t) at; /* of each type, see index_types */
};

static bool find_sections(const uint8_t *data, size_t size, struct types *t)
{
    struct btf_header h;
    if (size < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    if (h.magic != BTF_MAGIC || h.hdr_len < sizeof h || h.hdr_len > size)
        return false;
    size_t rest = size - h.hdr_len;
    if (h.type_off > rest || h.type_len > rest - h.type_off || h.str_off > rest ||
        h.str_len > rest - h.str_off || !h.str_len || h.type_off % 4)
        return false;
    *t = (struct types){.types = data + h.hdr_len + h.type_off,
                        .types_len = h.type_len,
                        .strings = (const char *)data + h.hdr_len + h.str_off,
                        .strings_len = h.str_len};
    return t->strings[t->strings_len - 1] == 0;
}

static bool is_named(const struct types *t, uint32_t at, const char *name)
{
    return at < t->strings_len && strcmp(t->strings + at, name) == 0;
}

/* What follows a type's head; SIZE_MAX for a kind that is not known. */
static size_t tail_of(const struct btf_type *type)
{
    size_t n = BTF_INFO_VLEN(type->info);
    switch (BTF_INFO_KIND(type->info)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
        return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
        return 4;
    case BTF_KIND_ARRAY:
        return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
        return n * sizeof(struct btf_member);
    case BTF_KIND_ENUM:
        return n * sizeof(struct btf_enum);
    case BTF_KIND_FUNC_PROTO:
        return n * sizeof(struct btf_param);
    case BTF_KIND_DATASEC:
        return n * sizeof(struct btf_var_secinfo);
    case BTF_KIND_ENUM64:
        return n * sizeof(struct btf_enum64);
    }
    return SIZE_MAX;
}

/* Where each type starts, by its number; number 0 is void. False if they are malformed. */
static bool index_types(struct types *t)
{
    *vector_push(&t->at) = 0;
    for (size_t at = 0; t->types_len - at >= sizeof(struct btf_type);) {
        struct btf_type type;
        memcpy(&type, t->types + at, sizeof type);
        size_t tail = tail_of(&type);
        if (tail > t->types_len - at - sizeof type)
            return false;
        *vector_push(&t->at) = (uint32_t)at;
        at += sizeof type + tail;
    }
    return true;
}

static bool is_compound(const struct btf_type *type)
{
    unsigned kind = BTF_INFO_KIND(type->info);
    return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

/* Members of nameless members count as the structure's own, as in C. */
static void read_members(const struct types *t, uint32_t number, uint32_t base, unsigned depth,
                         const char *const *names, uint32_t *offsets)
{
    struct btf_type type;
    if (!number || number >= t->at.len || depth > DEPTH_MAX)
        return;
    const uint8_t *at = t->types + t->at.data[number];
    memcpy(&type, at, sizeof type);
    if (!is_compound(&type))
        return;
    for (size_t k = 0; k < BTF_INFO_VLEN(type.info); k++) {
        struct btf_member m;
        memcpy(&m, at + sizeof type + k * sizeof m, sizeof m);
        uint32_t bits = BTF_INFO_KFLAG(type.info) ? BTF_MEMBER_BIT_OFFSET(m.offset) : m.offset;
        uint32_t offset = base + bits / 8;
        if (is_named(t, m.name_off, ""))
            read_members(t, m.type, offset, depth + 1, names, offsets);
        for (size_t i = 0; names[i]; i++)
            if (is_named(t, m.name_off, names[i]))
                offsets[i] = offset;
    }
}

static int find_offsets(const struct types *t, const struct btf_wanted *w)
{
    const char *const *names = w->names;
    uint32_t *offsets = w->offsets;
    for (uint32_t n = 1; n < t->at.len; n++) {
        struct btf_type type;
        memcpy(&type, t->types + t->at.data[n], sizeof type);
        if (BTF_INFO_KIND(type.info) != BTF_KIND_STRUCT ||
            !is_named(t, type.name_off, w->structure))
            continue;
        for (size_t i = 0; names[i]; i++)
            offsets[i] = UINT32_MAX;
        read_members(t, n, 0, 0, names, offsets);
        for (size_t i = 0; names[i]; i++)
            if (offsets[i] == UINT32_MAX)
                return -1;
        return 0;
    }
    return -1;
}

static bool forgive(const struct btf_wanted *w)
{
    for (size_t i = 0; w->optional && w->names[i]; i++)
        w->offsets[i] = 0;
    return w->optional;
}

int btf_offsets(const uint8_t *data, size_t size, const struct btf_wanted *wanted)
{
    struct types t = {0};
    int rc = find_sections(data, size, &t) && index_types(&t) ? 0 : -1;
    for (; !rc && wanted->structure; wanted++)
        if (find_offsets(&t, wanted) && !forgive(wanted))
            rc = -1;
    vector_release(&t.at);
    return rc;
}

static int read_kernel(const struct btf_wanted *wanted)
{
    char *data;
    size_t size;
    if (io_slurp("/sys/kernel/btf/vmlinux", SIZE_MAX_READ, &data, &size, NULL))
        return -1;
    int rc = btf_offsets((const uint8_t *)data, size, wanted);
    free(data);
    return rc;
}

/* What an answer is good for: this boot and this question. */
static bool add_name(const struct btf_wanted *wanted, struct text *path)
{
    char *boot;
    if (io_slurp("/proc/sys/kernel/random/boot_id", 64, &boot, NULL, NULL))
        return false;
    uint64_t hash = 0;
    for (; wanted->structure; wanted++) {
        hash = hash * 31 + hash_bytes(wanted->structure, strlen(wanted->structure));
        for (size_t i = 0; wanted->names[i]; i++)
            hash = hash * 31 + hash_bytes(wanted->names[i], strlen(wanted->names[i]));
    }
    text_format(path, "/%.36s-%016" PRIx64, boot, hash);
    free(boot);
    return true;
}

/* Writes or reads all offsets, one behind the other. */
static bool each_offset(const struct btf_wanted *wanted, int fd, bool write)
{
    for (; wanted->structure; wanted++)
        for (size_t i = 0; wanted->names[i]; i++) {
            uint32_t *at = &wanted->offsets[i];
            if (write ? io_write(fd, at, sizeof *at) != 0
                      : io_read(fd, at, sizeof *at) != (ssize_t)sizeof *at)
                return false;
        }
    return true;
}

/* To a name of its own first, so that nobody ever sees half of it. */
static void keep(const struct btf_wanted *wanted, const char *folder, const char *path)
{
    struct text part = TEXT_INIT;
    text_format(&part, "%s/.new", folder);
    int fd = temporary_file(&part);
    if (fd >= 0) {
        bool whole = each_offset(wanted, fd, true);
        close(fd);
        if (!whole || rename(part.data, path))
            unlink(part.data);
    }
    text_release(&part);
}

int btf_kernel_offsets(const struct btf_wanted *wanted)
{
    struct text folder = TEXT_INIT, path = TEXT_INIT;
    bool kept = cache_folder("types", &folder);
    text_add(&path, kept ? folder.data : "");
    kept = kept && add_name(wanted, &path);
    int fd = kept ? cache_open(path.data) : -1;
    int rc = fd >= 0 && each_offset(wanted, fd, false) ? 0 : -1;
    if (fd >= 0)
        close(fd);
    if (rc && !(rc = read_kernel(wanted)) && kept)
        keep(wanted, folder.data, path.data);
    text_release(&path);
    text_release(&folder);
    return rc;
}
