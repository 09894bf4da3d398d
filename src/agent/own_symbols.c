/* Reading the program's table of symbols; see own_symbols.h. */
#include "agent/own_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/arch.h"

#define SYMBOLS_MAX (8u << 20)

struct image {
    const uint8_t *bytes;
    uint64_t size;
    const ElfW(Shdr) * sections;
    uint32_t count;
};

static bool holds(const struct image *m, uint64_t at, uint64_t size)
{
    return at <= m->size && size <= m->size - at;
}

static bool image_open(struct image *m)
{
    struct stat st;
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    long at = -1;
    if (raw2(SYS_fstat, fd, &st) == 0 && st.st_size > (off_t)sizeof(ElfW(Ehdr)))
        at = raw6(SYS_mmap, NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    raw1(SYS_close, fd);
    if (at < 0 && at > -4096)
        return false;
    m->bytes = (const uint8_t *)at;
    m->size = (uint64_t)st.st_size;
    return true;
}

/* Every number in the file is taken for what it is: somebody else's. */
static bool sections_find(struct image *m)
{
    ElfW(Ehdr) h;
    memcpy(&h, m->bytes, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_shentsize != sizeof(ElfW(Shdr)) ||
        h.e_shoff % _Alignof(ElfW(Shdr)) ||
        !holds(m, h.e_shoff, (uint64_t)h.e_shnum * sizeof(ElfW(Shdr))))
        return false;
    m->sections = (const ElfW(Shdr) *)(m->bytes + h.e_shoff);
    m->count = h.e_shnum;
    return true;
}

/* The full table, or the loader's where the other was stripped. */
static const ElfW(Shdr) * table_find(const struct image *m)
{
    const ElfW(Shdr) *found = NULL;
    for (uint32_t i = 0; i < m->count; i++) {
        const ElfW(Shdr) *s = &m->sections[i];
        bool fits = s->sh_entsize == sizeof(ElfW(Sym)) && s->sh_link < m->count &&
                    s->sh_offset % _Alignof(ElfW(Sym)) == 0 && holds(m, s->sh_offset, s->sh_size);
        if (fits && (s->sh_type == SHT_SYMTAB || (s->sh_type == SHT_DYNSYM && !found)))
            found = s;
    }
    return found;
}

struct loaded {
    const ElfW(Phdr) * headers;
    size_t count;
    uint64_t base;
};

/* Where the program was loaded, from the difference between its headers here and in the file. */
static bool loaded_find(struct loaded *l)
{
    l->headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    l->count = getauxval(AT_PHNUM);
    for (size_t i = 0; l->headers && i < l->count; i++)
        if (l->headers[i].p_type == PT_PHDR) {
            l->base = (uint64_t)(uintptr_t)l->headers - l->headers[i].p_vaddr;
            return true;
        }
    return false;
}

static bool is_code(const struct loaded *l, const ElfW(Sym) * s)
{
    for (size_t i = 0; i < l->count; i++) {
        const ElfW(Phdr) *p = &l->headers[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && s->st_value - p->p_vaddr < p->p_filesz)
            return s->st_size <= p->p_filesz - (s->st_value - p->p_vaddr);
    }
    return false;
}

static void table_read(const struct image *m, const ElfW(Shdr) * table, own_symbols_each *each,
                       void *context)
{
    const ElfW(Shdr) *names = &m->sections[table->sh_link];
    const ElfW(Sym) *s = (const ElfW(Sym) *)(m->bytes + table->sh_offset);
    uint64_t count = table->sh_size / sizeof *s;
    struct loaded l;
    if (!holds(m, names->sh_offset, names->sh_size) || names->sh_size == 0 || !loaded_find(&l))
        return;
    const char *text = (const char *)m->bytes + names->sh_offset;
    if (text[names->sh_size - 1] != 0)
        return;
    for (const ElfW(Sym) *end = s + (count < SYMBOLS_MAX ? count : SYMBOLS_MAX); s < end; s++)
        if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
            s->st_shndx != SHN_UNDEF && s->st_name < names->sh_size && is_code(&l, s))
            each(context, text + s->st_name,
                 (struct own_symbol){.address = l.base + s->st_value, .size = s->st_size});
}

int own_symbols_read(own_symbols_each *each, void *context)
{
    struct image m = {0};
    if (!image_open(&m))
        return -ENOENT;
    const ElfW(Shdr) *table = sections_find(&m) ? table_find(&m) : NULL;
    if (table)
        table_read(&m, table, each, context);
    raw2(SYS_munmap, m.bytes, m.size);
    return table ? 0 : -ENOEXEC;
}
