/*
 * Finds the frame section of an ELF module - in a file, in a whole image in memory, or loaded into
 * this process - and hands it to the compiler: rows_read_* of rows.h.
 */
#include "unwind/rows.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "unwind/cursor.h"
#include "unwind/pages.h"

#define FRAME_MAX ((uint64_t)1 << 30)
#define NOTES_MAX 65536
#define PAGE_MASK (~(uint64_t)4095)

/* Where the bytes come from: a descriptor, or memory if data is set. */
struct source {
    int fd;
    const uint8_t *data;
    uint64_t size; /* of data */
};

struct module {
    struct source source;
    Elf64_Ehdr header;
    struct pages segments, sections;
    size_t segment_count, section_count;
    uint64_t low, high;
};

/* A piece of the file that belongs at a virtual address. */
struct piece {
    uint64_t vaddr, offset, size;
};

static int source_read(const struct source *s, uint64_t offset, void *to, size_t size)
{
    if (s->data) {
        if (offset > s->size || size > s->size - offset)
            return -EBADMSG;
        memcpy(to, s->data + offset, size);
        return 0;
    }
    for (size_t done = 0; done < size;) {
        uint64_t at = offset + done;
        if (at > INT64_MAX)
            return -EBADMSG;
        ssize_t n = pread(s->fd, (char *)to + done, size - done, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EBADMSG;
        done += (size_t)n;
    }
    return 0;
}

static int load(const struct source *s, uint64_t offset, size_t size, struct pages *to)
{
    if (pages_reserve(to, size))
        return -ENOMEM;
    return source_read(s, offset, to->data, size);
}

static const Elf64_Phdr *segment(const struct module *m, size_t i)
{
    return (const Elf64_Phdr *)m->segments.data + i;
}

/* The module's first page and the address past its last byte. */
static int find_extent(const Elf64_Phdr *phdr, size_t count, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t end;
        if (phdr[i].p_type != PT_LOAD)
            continue;
        if (__builtin_add_overflow(phdr[i].p_vaddr, phdr[i].p_memsz, &end))
            return -EBADMSG;
        if ((phdr[i].p_vaddr & PAGE_MASK) < *low)
            *low = phdr[i].p_vaddr & PAGE_MASK;
        if (end > *high)
            *high = end;
    }
    return *low < *high ? 0 : -ENODATA;
}

static int open_module(struct module *m)
{
    Elf64_Ehdr *h = &m->header;
    int rc = source_read(&m->source, 0, h, sizeof(*h));
    if (rc)
        return rc == -EBADMSG ? -ENOEXEC : rc;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != UNWIND_ELF_MACHINE)
        return -ENOEXEC;
    if (!h->e_phnum || h->e_phentsize != sizeof(Elf64_Phdr))
        return -ENODATA;
    m->segment_count = h->e_phnum;
    rc = load(&m->source, h->e_phoff, m->segment_count * sizeof(Elf64_Phdr), &m->segments);
    if (rc)
        return rc;
    rc = find_extent(m->segments.data, m->segment_count, &m->low, &m->high);
    if (rc || !h->e_shnum || h->e_shentsize != sizeof(Elf64_Shdr))
        return rc;
    /* Without section headers the segments have to do. */
    size_t size = h->e_shnum * sizeof(Elf64_Shdr);
    if (load(&m->source, h->e_shoff, size, &m->sections) == 0)
        m->section_count = h->e_shnum;
    return 0;
}

static void close_module(struct module *m)
{
    pages_release(&m->segments);
    pages_release(&m->sections);
}

/* The part of the file from `vaddr` to the end of its segment. */
static bool find_vaddr(const struct module *m, uint64_t vaddr, struct piece *piece)
{
    for (size_t i = 0; i < m->segment_count; i++) {
        const Elf64_Phdr *p = segment(m, i);
        if (p->p_type != PT_LOAD || vaddr < p->p_vaddr || vaddr - p->p_vaddr >= p->p_filesz)
            continue;
        uint64_t skip = vaddr - p->p_vaddr;
        *piece = (struct piece){
            .vaddr = vaddr, .offset = p->p_offset + skip, .size = p->p_filesz - skip};
        return true;
    }
    return false;
}

/* .eh_frame_hdr begins with version, three encodings, and the address of .eh_frame. */
static bool frame_of_header(const uint8_t *data, size_t size, uint64_t vaddr, uint64_t *frame)
{
    struct cursor c = {.at = data, .end = data + size};
    const struct pointer_bases b = {.section = data, .vaddr = vaddr, .data = vaddr};
    if (cursor_u8(&c) != 1)
        return false;
    uint8_t encoding = cursor_u8(&c);
    cursor_take(&c, 2);
    if (encoding == POINTER_OMIT || encoding & 0x80)
        return false;
    *frame = cursor_pointer(&c, encoding, &b);
    return !c.bad;
}

/* The section at `vaddr`, or with the given name if vaddr is 0. */
static bool find_section(const struct module *m, uint64_t vaddr, const char *name,
                         struct piece *piece)
{
    const Elf64_Shdr *all = m->sections.data;
    bool named = m->header.e_shstrndx < m->section_count;
    for (size_t i = 0; i < m->section_count; i++) {
        const Elf64_Shdr *s = &all[i];
        if (s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED || !s->sh_size)
            continue;
        if (vaddr ? s->sh_addr != vaddr : !named)
            continue;
        char text[16] = "";
        if (!vaddr && (source_read(&m->source, all[m->header.e_shstrndx].sh_offset + s->sh_name,
                                   text, strlen(name) + 1) ||
                       memcmp(text, name, strlen(name) + 1)))
            continue;
        *piece = (struct piece){.vaddr = s->sh_addr, .offset = s->sh_offset, .size = s->sh_size};
        return true;
    }
    return false;
}

/* Looks for .eh_frame: through PT_GNU_EH_FRAME, which survives everything, or by its name. */
static bool find_eh_frame(const struct module *m, struct rows_image *image, struct piece *piece)
{
    for (size_t i = 0; i < m->segment_count; i++) {
        const Elf64_Phdr *p = segment(m, i);
        uint8_t header[16] = {0};
        uint64_t vaddr;
        if (p->p_type != PT_GNU_EH_FRAME || p->p_filesz < 8)
            continue;
        size_t size = p->p_filesz < sizeof(header) ? p->p_filesz : sizeof(header);
        if (source_read(&m->source, p->p_offset, header, size) ||
            !frame_of_header(header, size, p->p_vaddr, &vaddr) || !find_vaddr(m, vaddr, piece))
            continue;
        image->hdr_vaddr = p->p_vaddr;
        struct piece section;
        if (vaddr && find_section(m, vaddr, NULL, &section) && section.size <= piece->size) {
            piece->size = section.size;
            image->exact_size = true;
        }
        return true;
    }
    image->exact_size = true;
    return find_section(m, 0, ".eh_frame", piece);
}

static int compile_piece(const struct module *m, const struct piece *piece,
                         struct rows_image *image, struct rows *out)
{
    if (piece->size > FRAME_MAX)
        return -EFBIG;
    struct pages data = {0};
    int rc = load(&m->source, piece->offset, piece->size, &data);
    if (!rc) {
        image->frame = data.data;
        image->frame_size = piece->size;
        image->frame_vaddr = piece->vaddr;
        image->low = m->low;
        image->high = m->high;
        rc = rows_compile(image, out);
    }
    pages_release(&data);
    return rc;
}

static int read_module(struct module *m, struct rows *out)
{
    memset(out, 0, sizeof(*out));
    struct rows_image image = {0};
    struct piece piece;
    int rc = open_module(m);
    if (!rc) {
        rc = find_eh_frame(m, &image, &piece) ? compile_piece(m, &piece, &image, out) : -ENODATA;
        if (rc == -ENODATA && find_section(m, 0, ".debug_frame", &piece)) {
            image = (struct rows_image){.debug_frame = true, .exact_size = true};
            rc = compile_piece(m, &piece, &image, out);
        }
    }
    close_module(m);
    return rc;
}

int rows_read_elf(int fd, struct rows *out)
{
    struct module m = {.source = {.fd = fd}};
    return read_module(&m, out);
}

int rows_read_memory(const void *elf, size_t size, struct rows *out)
{
    struct module m = {.source = {.fd = -1, .data = elf, .size = size}};
    return read_module(&m, out);
}

/* Bytes readable at `vaddr` of a loaded module. */
static size_t readable_at(const Elf64_Phdr *phdr, size_t count, uint64_t vaddr)
{
    for (size_t i = 0; i < count; i++) {
        if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_R && vaddr >= phdr[i].p_vaddr &&
            vaddr - phdr[i].p_vaddr < phdr[i].p_filesz)
            return phdr[i].p_filesz - (vaddr - phdr[i].p_vaddr);
    }
    return 0;
}

int rows_read_loaded(uint64_t bias, const void *phdrs, size_t phnum, struct rows *out)
{
    const Elf64_Phdr *phdr = phdrs;
    struct rows_image image = {0};
    memset(out, 0, sizeof(*out));
    int rc = find_extent(phdr, phnum, &image.low, &image.high);
    for (size_t i = 0; !rc && i < phnum; i++) {
        if (phdr[i].p_type != PT_GNU_EH_FRAME)
            continue;
        size_t size = readable_at(phdr, phnum, phdr[i].p_vaddr);
        if (!frame_of_header((const uint8_t *)(bias + phdr[i].p_vaddr), size < 16 ? size : 16,
                             phdr[i].p_vaddr, &image.frame_vaddr))
            return -EBADMSG;
        image.hdr_vaddr = phdr[i].p_vaddr;
        image.frame_size = readable_at(phdr, phnum, image.frame_vaddr);
        image.frame = (const uint8_t *)(bias + image.frame_vaddr);
        return image.frame_size ? rows_compile(&image, out) : -EBADMSG;
    }
    return rc ? rc : -ENODATA;
}

static bool find_bias(const struct module *m, uint32_t flags, uint64_t start, uint64_t offset,
                      uint64_t *bias)
{
    for (size_t i = 0; i < m->segment_count; i++) {
        const Elf64_Phdr *p = segment(m, i);
        uint64_t first = p->p_offset & PAGE_MASK;
        if (p->p_type != PT_LOAD || (p->p_flags & flags) != flags || offset < first ||
            offset - first >= p->p_filesz + (p->p_offset - first))
            continue;
        *bias = start - (p->p_vaddr - p->p_offset + offset);
        return true;
    }
    return false;
}

int rows_read_bias(int fd, uint64_t start, uint64_t offset, uint64_t *bias)
{
    struct module m = {.source = {.fd = fd}};
    int rc = open_module(&m);
    /* Code is mapped as such, but some tools join it with what is mapped before it. */
    bool found =
        !rc && (find_bias(&m, PF_X, start, offset, bias) || find_bias(&m, 0, start, offset, bias));
    close_module(&m);
    return rc || found ? rc : -ENODATA;
}

/* Looks for the build-id among the notes of one segment; its length or -ENODATA. */
static int scan_notes(struct cursor c, uint64_t align, uint8_t id[ROWS_BUILD_ID_MAX])
{
    const uint8_t *start = c.at;
    while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
        uint32_t name_size = cursor_u32(&c), size = cursor_u32(&c), type = cursor_u32(&c);
        const uint8_t *name = cursor_take(&c, name_size);
        cursor_take(&c, -(uint64_t)(c.at - start) & (align - 1));
        const uint8_t *data = cursor_take(&c, size);
        if (!data)
            break;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && !memcmp(name, "GNU", 4) && size &&
            size <= ROWS_BUILD_ID_MAX) {
            memcpy(id, data, size);
            return (int)size;
        }
        uint64_t padding = -(uint64_t)(c.at - start) & (align - 1);
        cursor_take(&c, padding < cursor_left(&c) ? padding : cursor_left(&c));
    }
    return -ENODATA;
}

int rows_read_build_id(int fd, uint8_t id[ROWS_BUILD_ID_MAX])
{
    struct module m = {.source = {.fd = fd}};
    int rc = open_module(&m);
    int found = rc ? rc : -ENODATA;
    struct pages notes = {0};
    for (size_t i = 0; found == -ENODATA && !rc && i < m.segment_count; i++) {
        const Elf64_Phdr *p = segment(&m, i);
        if (p->p_type != PT_NOTE || p->p_filesz > NOTES_MAX ||
            load(&m.source, p->p_offset, p->p_filesz, &notes))
            continue;
        const uint8_t *data = notes.data;
        found = scan_notes((struct cursor){.at = data, .end = data + p->p_filesz},
                           p->p_align == 8 ? 8 : 4, id);
    }
    pages_release(&notes);
    close_module(&m);
    return found;
}
