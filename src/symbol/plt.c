/*
 * Stubs of the procedure linkage table, named "function@plt". A stub's jump is decoded to find the
 * slot that it reads; the relocation of that slot names the function. This holds for every
 * layout (.plt, .plt.sec, .plt.got, lazy or not) without knowing any.
 */
#include "symbol/symbol_internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TABLE_MAX ((size_t)256 << 20)
#define STUB_MAX 32

struct plt {
    struct module *m;
    const struct image *image;
    struct map slot; /* address -> symbol index */
    uint8_t *symbols;
    char *strings;
    size_t symbols_len, strings_len;
};

static void read_relocations(struct plt *p, const struct image_section *s)
{
    size_t len = 0, step = sizeof(Elf64_Rela);
    uint8_t *data = image_load(p->image, s, TABLE_MAX, &len);
    for (size_t at = 0; data && len - at >= step; at += step) {
        Elf64_Rela r;
        memcpy(&r, data + at, sizeof r);
        if (ELF64_R_SYM(r.r_info))
            map_put(&p->slot, r.r_offset, 0, ELF64_R_SYM(r.r_info), NULL);
    }
    free(data);
}

static bool plt_open(struct plt *p)
{
    const struct image_section *symbols = image_find(p->image, ".dynsym");
    if (!symbols || symbols->link >= p->image->sections)
        return false;
    p->symbols = image_load(p->image, symbols, TABLE_MAX, &p->symbols_len);
    p->strings =
        (char *)image_load(p->image, &p->image->section[symbols->link], TABLE_MAX, &p->strings_len);
    if (!p->symbols || !p->strings)
        return false;
    for (size_t i = 0; i < p->image->sections; i++)
        if (p->image->section[i].type == SHT_RELA)
            read_relocations(p, &p->image->section[i]);
    return p->slot.len > 0;
}

static void plt_release(struct plt *p)
{
    map_release(&p->slot);
    free(p->symbols);
    free(p->strings);
}

/* jmp *disp(%rip), after an endbr64 and with a bnd prefix where there are such. */
static uint64_t slot_x86(const uint8_t *code, size_t len, uint64_t address)
{
    static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t at = 0;
    if (len >= 4 && memcmp(code, endbr, 4) == 0)
        at = 4;
    if (at < len && code[at] == 0xf2)
        at++;
    if (at + 6 > len || code[at] != 0xff || code[at + 1] != 0x25)
        return 0;
    int32_t disp;
    memcpy(&disp, code + at + 2, 4);
    return address + at + 6 + (uint64_t)(int64_t)disp;
}

/* adrp x16, page; ldr x17, [x16, #offset], after a bti where there is one. */
static uint64_t slot_arm(const uint8_t *code, size_t len, uint64_t address)
{
    for (size_t at = 0; at + 8 <= len && at <= 4; at += 4) {
        uint32_t adrp, ldr;
        memcpy(&adrp, code + at, 4);
        memcpy(&ldr, code + at + 4, 4);
        if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
            continue;
        int64_t page = (int64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3));
        if (page & 0x100000)
            page -= 0x200000;
        return ((address + at) & ~(uint64_t)0xfff) + ((uint64_t)page << 12) +
               (ldr >> 10 & 0xfff) * 8;
    }
    return 0;
}

static const char *slot_name(const struct plt *p, uint64_t slot)
{
    const uint64_t *index = slot ? map_get(&p->slot, slot, 0) : NULL;
    Elf64_Sym s;
    if (!index || *index >= p->symbols_len / sizeof s)
        return NULL;
    memcpy(&s, p->symbols + *index * sizeof s, sizeof s);
    return s.st_name < p->strings_len ? p->strings + s.st_name : NULL;
}

/* Stubs are 8 or 16 bytes and aligned so; the address may be anywhere inside one. */
static void name_address(struct plt *p, const struct image_section *s, size_t index)
{
    uint64_t address = p->m->answers.address[index];
    for (uint64_t align = 8; align <= 16; align += 8) {
        uint64_t start = address & ~(align - 1);
        uint8_t code[STUB_MAX];
        if (start < s->address)
            continue;
        uint64_t left = s->address + s->size - start;
        size_t len = left < align ? left : align;
        if (!image_read(p->image, s->offset + (start - s->address), code, len))
            continue;
        uint64_t slot = p->image->machine == EM_AARCH64 ? slot_arm(code, len, start)
                                                        : slot_x86(code, len, start);
        const char *name = slot_name(p, slot);
        if (!name || !*name)
            continue;
        char stub[SYMBOL_TEXT_MAX];
        snprintf(stub, sizeof stub, "%.*s@plt", (int)sizeof stub - 8, name);
        answers_name(&p->m->answers, index, stub, start);
        return;
    }
}

static int plt_run(struct module *m, struct error *err)
{
    (void)err;
    struct plt p = {.m = m, .image = m->image};
    if (!m->image || !m->image->wide || !m->answers.open)
        return 0;
    if (plt_open(&p))
        for (size_t i = 0; i < m->answers.count; i++) {
            if (m->answers.item[i].named)
                continue;
            const struct image_section *s = image_code_at(m->image, m->answers.address[i]);
            if (s && strncmp(s->name, ".plt", 4) == 0)
                name_address(&p, s, i);
        }
    plt_release(&p);
    return 0;
}

const struct resolver resolver_plt = {"plt", SYMBOL_ELF, plt_run};
