/* Modules side by side; see perf_data_layout.h. */
#include "formats/perf_data_layout.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "formats/maps.h"

#define PAGE ((uint64_t)4096)
#define BASE ((uint64_t)1 << 44)       /* where no kernel of today puts anything of a program */
#define MODULE_MAX ((uint64_t)1 << 32) /* bytes of one, so that all fit below 2^47 */
#define SEGMENTS_MAX 64
#define CONTEXT_MAX ((uint64_t)-4095) /* markers of chains from here on */

/* Address minus file offset of the code at an address of an ELF file; 0 if nobody knows. */
static uint64_t shift_at(int fd, uint64_t address)
{
    Elf64_Ehdr head;
    Elf64_Phdr segment[SEGMENTS_MAX];
    if (io_pread(fd, &head, sizeof head, 0) != sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof *segment || head.e_phnum > SEGMENTS_MAX ||
        head.e_phoff > INT64_MAX)
        return 0;
    ssize_t size = (ssize_t)(head.e_phnum * sizeof *segment);
    if (io_pread(fd, segment, (size_t)size, (off_t)head.e_phoff) != size)
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++)
        if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_X) &&
            address >= segment[i].p_vaddr && address - segment[i].p_vaddr < segment[i].p_memsz)
            return segment[i].p_vaddr - segment[i].p_offset;
    return 0;
}

static uint64_t shift_of(const struct profile *p, const struct profile_module *m, uint64_t address)
{
    int fd = m->kind == CODE_ELF ? maps_open(profile_text(p, m->path), m->build_id, m->build_id_len)
                                 : -1;
    uint64_t shift = fd >= 0 ? shift_at(fd, address) : 0;
    if (fd >= 0)
        close(fd);
    return shift <= address ? shift : 0;
}

static bool is_moved(enum code_kind kind)
{
    return kind == CODE_ELF || kind == CODE_VDSO;
}

static enum code_kind kind_of(const struct profile *p, uint32_t module)
{
    return module < p->modules.len ? p->modules.data[module].kind : CODE_UNKNOWN;
}

static bool has_address(const struct profile *p, const struct profile_frame *f)
{
    enum code_kind kind = kind_of(p, f->module);
    if (!f->address || kind == CODE_PYTHON || kind == CODE_SPAN)
        return false;
    return f->address < (is_moved(kind) ? MODULE_MAX : CONTEXT_MAX - 1);
}

static void find_extents(struct layout *l, const struct profile *p)
{
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        if (f->module >= p->modules.len || !has_address(p, f))
            continue;
        struct layout_module *m = &l->modules[f->module];
        if (!m->used || f->address < m->first)
            m->first = f->address;
        if (!m->used || f->address > m->last)
            m->last = f->address;
        m->used = true;
    }
}

/* Gives every module its mapping. */
static void place_modules(struct layout *l, const struct profile *p)
{
    uint64_t next = BASE;
    for (uint32_t i = 0; i < p->modules.len; i++) {
        struct layout_module *m = &l->modules[i];
        enum code_kind kind = p->modules.data[i].kind;
        if (!m->used || (!is_moved(kind) && kind != CODE_JIT))
            continue;
        uint64_t shift = is_moved(kind) ? shift_of(p, &p->modules.data[i], m->first) : 0;
        uint64_t low = (m->first - shift) / PAGE * PAGE;
        uint64_t high = ((m->last - shift) / PAGE + 2) * PAGE;
        uint64_t base = kind == CODE_JIT ? 0 : next;
        m->offset = kind == CODE_JIT ? 0 : low;
        m->start = base + low;
        m->end = base + high;
        m->distance = base - shift;
        if (kind != CODE_JIT)
            next = m->end + PAGE;
    }
}

void layout_init(struct layout *l, const struct profile *p)
{
    l->frames = memory_array(p->frames.len + 1, sizeof *l->frames);
    l->modules = memory_array(p->modules.len + 1, sizeof *l->modules);
    find_extents(l, p);
    place_modules(l, p);
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        if (!has_address(p, f))
            continue;
        l->frames[i].kernel = kind_of(p, f->module) == CODE_KERNEL;
        l->frames[i].address = f->address;
        if (is_moved(kind_of(p, f->module)))
            l->frames[i].address += l->modules[f->module].distance;
    }
}

void layout_release(struct layout *l)
{
    free(l->frames);
    free(l->modules);
}
