#include "symbol/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "symbol/rooted.h"

#define NAMES_MAX (16u << 20)
#define NOTES_MAX (64u << 10)
#define NOTE_SECTIONS_MAX 64

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

struct header {
    uint64_t section_offset, program_offset;
    uint32_t section_size, section_count, program_size, program_count, name_index;
};

bool image_read(const struct image *image, uint64_t offset, void *data, size_t len)
{
    if (offset > image->size || len > image->size - offset)
        return false;
    if (image->memory) {
        memcpy(data, image->memory + offset, len);
        return true;
    }
    return io_pread(image->fd, data, len, offset) == (ssize_t)len;
}

static int broken(const struct image *image, const char *what, struct error *err)
{
    return error_set(err, FAULT_INPUT, "%s is not a readable ELF file: %s", image->path, what);
}

static int read_header(struct image *image, struct header *h, struct error *err)
{
    unsigned char ident[EI_NIDENT];
    if (!image_read(image, 0, ident, sizeof ident) || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return broken(image, "it does not begin with the ELF magic", err);
    if (ident[EI_DATA] != NATIVE_DATA)
        return broken(image, "its byte order is not this machine's", err);
    image->wide = ident[EI_CLASS] == ELFCLASS64;
    if (image->wide) {
        Elf64_Ehdr e;
        if (!image_read(image, 0, &e, sizeof e))
            return broken(image, "its header is cut off", err);
        image->machine = e.e_machine;
        *h = (struct header){e.e_shoff,     e.e_phoff, e.e_shentsize, e.e_shnum,
                             e.e_phentsize, e.e_phnum, e.e_shstrndx};
    } else {
        Elf32_Ehdr e;
        if (ident[EI_CLASS] != ELFCLASS32 || !image_read(image, 0, &e, sizeof e))
            return broken(image, "its header is cut off", err);
        image->machine = e.e_machine;
        *h = (struct header){e.e_shoff,     e.e_phoff, e.e_shentsize, e.e_shnum,
                             e.e_phentsize, e.e_phnum, e.e_shstrndx};
    }
    return 0;
}

/* `name` becomes the offset into the name table; names are set when that table is loaded. */
static bool read_section(const struct image *image, const struct header *h, size_t i,
                         struct image_section *s, uint32_t *name)
{
    uint64_t at = h->section_offset + i * (uint64_t)h->section_size;
    if (image->wide) {
        Elf64_Shdr e;
        if (!image_read(image, at, &e, sizeof e))
            return false;
        *name = e.sh_name;
        *s = (struct image_section){"",        e.sh_type,   e.sh_link, e.sh_info,   e.sh_flags,
                                    e.sh_addr, e.sh_offset, e.sh_size, e.sh_entsize};
        return true;
    }
    Elf32_Shdr e;
    if (!image_read(image, at, &e, sizeof e))
        return false;
    *name = e.sh_name;
    *s = (struct image_section){"",        e.sh_type,   e.sh_link, e.sh_info,   e.sh_flags,
                                e.sh_addr, e.sh_offset, e.sh_size, e.sh_entsize};
    return true;
}

/* Files with 0xff00 sections and more keep the real counts in section 0. */
static void widen_counts(struct image *image, struct header *h)
{
    struct image_section zero;
    uint32_t name;
    if (!h->section_offset || !read_section(image, h, 0, &zero, &name))
        return;
    if (h->section_count == 0)
        h->section_count = zero.size > UINT32_MAX ? UINT32_MAX : (uint32_t)zero.size;
    if (h->name_index == SHN_XINDEX)
        h->name_index = zero.link;
}

static int read_sections(struct image *image, struct header *h, struct error *err)
{
    size_t least = image->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    if (!h->section_offset)
        return 0;
    if (h->section_size < least)
        return broken(image, "its section headers are too small", err);
    if (h->section_offset >= image->size)
        return broken(image, "its section headers lie past the end; it may be cut off", err);
    widen_counts(image, h);
    if (h->section_count > IMAGE_SECTIONS_MAX ||
        h->section_count > (image->size - h->section_offset) / h->section_size)
        return broken(image, "it claims more sections than it can hold; it may be cut off", err);
    image->section = memory_array(h->section_count ? h->section_count : 1, sizeof *image->section);
    uint32_t *name = memory_array(h->section_count ? h->section_count : 1, sizeof *name);
    for (size_t i = 0; i < h->section_count; i++)
        if (!read_section(image, h, i, &image->section[i], &name[i]))
            break;
        else
            image->sections = i + 1;
    size_t len = 0;
    if (h->name_index < image->sections)
        image->names = (char *)image_load(image, &image->section[h->name_index], NAMES_MAX, &len);
    for (size_t i = 0; i < image->sections; i++)
        if (image->names && name[i] < len)
            image->section[i].name = image->names + name[i];
    free(name);
    return 0;
}

/* namesz, descsz, type, then name and descriptor, each padded to 4. */
static bool scan_notes(struct image *image, const uint8_t *data, size_t len)
{
    size_t at = 0;
    while (len - at >= 12) {
        uint32_t head[3];
        memcpy(head, data + at, sizeof head);
        at += sizeof head;
        size_t name = ((size_t)head[0] + 3) & ~(size_t)3,
               value = ((size_t)head[1] + 3) & ~(size_t)3;
        if (name > len - at || head[1] > len - at - name)
            return false;
        if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && memcmp(data + at, "GNU", 4) == 0 &&
            head[1] > 0 && head[1] <= IMAGE_BUILD_ID_MAX) {
            memcpy(image->build_id, data + at + name, head[1]);
            image->build_id_len = head[1];
            return true;
        }
        at += name;
        if (value > len - at)
            return false;
        at += value;
    }
    return false;
}

static bool scan_notes_at(struct image *image, uint64_t offset, uint64_t size)
{
    if (size > NOTES_MAX || size < 12)
        return false;
    uint8_t *data = memory_alloc(size);
    bool found = image_read(image, offset, data, size) && scan_notes(image, data, size);
    free(data);
    return found;
}

static void find_build_id(struct image *image, const struct header *h)
{
    size_t tried = 0;
    for (size_t i = 0; i < image->sections && tried < NOTE_SECTIONS_MAX; i++) {
        const struct image_section *s = &image->section[i];
        if (s->type == SHT_NOTE && ++tried && scan_notes_at(image, s->offset, s->size))
            return;
    }
    for (uint32_t i = 0; i < h->program_count && i < NOTE_SECTIONS_MAX; i++) {
        uint64_t at = h->program_offset + i * (uint64_t)h->program_size;
        Elf64_Phdr wide;
        Elf32_Phdr slim;
        if (image->wide) {
            if (image_read(image, at, &wide, sizeof wide) && wide.p_type == PT_NOTE &&
                scan_notes_at(image, wide.p_offset, wide.p_filesz))
                return;
        } else if (image_read(image, at, &slim, sizeof slim) && slim.p_type == PT_NOTE &&
                   scan_notes_at(image, slim.p_offset, slim.p_filesz)) {
            return;
        }
    }
}

static struct image *image_start(struct image *image, struct error *err)
{
    struct header h = {0};
    if (read_header(image, &h, err) < 0 || read_sections(image, &h, err) < 0) {
        image_free(image);
        return NULL;
    }
    find_build_id(image, &h);
    return image;
}

struct image *image_from_fd(int fd, const char *path, struct error *err)
{
    struct stat st;
    struct image *image = memory_alloc(sizeof *image);
    image->fd = fd;
    image->path = memory_strdup(path);
    if (fstat(fd, &st) < 0) {
        error_errno(err, FAULT_SYSTEM, "cannot examine %s", path);
        image_free(image);
        return NULL;
    }
    image->size = (uint64_t)st.st_size;
    return image_start(image, err);
}

struct image *image_open(const char *root, const char *path, struct error *err)
{
    int fd = rooted_open(root, path);
    if (fd >= 0)
        return image_from_fd(fd, path, err);
    bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
    error_errno(err, missing ? FAULT_MISSING : FAULT_SYSTEM, "cannot open %s", path);
    return NULL;
}

struct image *image_from_memory(uint8_t *data, size_t size, const char *label, struct error *err)
{
    struct image *image = memory_alloc(sizeof *image);
    image->fd = -1;
    image->memory = data;
    image->size = size;
    image->path = memory_strdup(label);
    return image_start(image, err);
}

void image_free(struct image *image)
{
    if (!image)
        return;
    if (image->fd >= 0)
        close(image->fd);
    free(image->memory);
    free(image->path);
    free(image->section);
    free(image->names);
    free(image);
}

const struct image_section *image_find(const struct image *image, const char *name)
{
    for (size_t i = 0; i < image->sections; i++) {
        const struct image_section *s = &image->section[i];
        if (s->type != SHT_NOBITS && s->type != SHT_NULL && strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

const struct image_section *image_code_at(const struct image *image, uint64_t address)
{
    for (size_t i = 0; i < image->sections; i++) {
        const struct image_section *s = &image->section[i];
        if ((s->flags & SHF_EXECINSTR) && address >= s->address && address - s->address < s->size)
            return s;
    }
    return NULL;
}

uint8_t *image_load(const struct image *image, const struct image_section *section, size_t max,
                    size_t *len)
{
    if (!section || section->type == SHT_NOBITS || section->size == 0 || section->size > max ||
        section->offset > image->size || section->size > image->size - section->offset)
        return NULL;
    uint8_t *data = memory_grow(NULL, section->size + 1, 1);
    if (!image_read(image, section->offset, data, section->size)) {
        free(data);
        return NULL;
    }
    data[section->size] = 0;
    *len = section->size;
    return data;
}

uint64_t image_inflated(const struct image *image)
{
    uint64_t total = 0;
    for (size_t i = 0; i < image->sections; i++) {
        const struct image_section *s = &image->section[i];
        uint64_t claim = 0;
        uint8_t old[12];
        Elf64_Chdr wide;
        Elf32_Chdr slim;
        if (s->flags & SHF_COMPRESSED) {
            if (image->wide && image_read(image, s->offset, &wide, sizeof wide))
                claim = wide.ch_size;
            else if (!image->wide && image_read(image, s->offset, &slim, sizeof slim))
                claim = slim.ch_size;
        } else if (strncmp(s->name, ".zdebug_", 8) == 0 && image_read(image, s->offset, old, 12)) {
            for (int b = 4; b < 12; b++)
                claim = claim << 8 | old[b];
        }
        total = claim > UINT64_MAX - total ? UINT64_MAX : total + claim;
    }
    return total;
}

bool image_is(const struct image *image, const uint8_t *build_id, size_t len)
{
    return image->build_id_len == len && memcmp(image->build_id, build_id, len) == 0;
}
