/* See elf_names.h. */
#include "capture/elf_names.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "symbol/image.h"

#define TABLE_MAX ((size_t)64 << 20)

struct table {
    uint8_t *symbols, *strings;
    size_t count, strings_len;
};

struct elf_names {
    struct table table[2]; /* .dynsym, .symtab */
};

static void table_read(const struct image *image, const char *section, const char *names,
                       struct table *t)
{
    size_t len = 0;
    t->symbols = image_load(image, image_find(image, section), TABLE_MAX, &len);
    t->strings = image_load(image, image_find(image, names), TABLE_MAX, &t->strings_len);
    t->count = t->symbols && t->strings ? len / sizeof(Elf64_Sym) : 0;
}

struct elf_names *elf_names_read(const struct module *m, bool all)
{
    struct error err = {0};
    int fd = m->fd >= 0 ? dup(m->fd) : -1;
    struct image *image =
        fd >= 0 ? image_from_fd(fd, m->path, &err) : image_open(m->root, m->path, &err);
    if (!image || !image->wide) {
        image_free(image);
        return NULL;
    }
    struct elf_names *n = memory_alloc(sizeof *n);
    table_read(image, ".dynsym", ".dynstr", &n->table[0]);
    if (all)
        table_read(image, ".symtab", ".strtab", &n->table[1]);
    image_free(image);
    return n;
}

void elf_names_free(struct elf_names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < 2; i++) {
        free(n->table[i].symbols);
        free(n->table[i].strings);
    }
    free(n);
}

/* image_load puts a NUL behind the strings, so that none runs over the end. */
static bool find_in(const struct table *t, const char *name, uint64_t *address, uint64_t *size)
{
    size_t len = strlen(name) + 1;
    for (size_t i = 0; i < t->count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, t->symbols + i * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= t->strings_len ||
            t->strings_len + 1 - symbol.st_name < len ||
            memcmp(t->strings + symbol.st_name, name, len) != 0)
            continue;
        *address = symbol.st_value;
        *size = symbol.st_size;
        return true;
    }
    return false;
}

bool elf_names_find(const struct elf_names *n, const char *name, uint64_t *address, uint64_t *size)
{
    return find_in(&n->table[0], name, address, size) || find_in(&n->table[1], name, address, size);
}
