/* Pointing modules' GOTs at the hooks; see got.h. */
#include "agent/got.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/real.h"

#define SLOTS 16384u
#define PAGE 4096ull

static const char *const names[] = {"malloc",
                                    "calloc",
                                    "realloc",
                                    "reallocarray",
                                    "free",
                                    "posix_memalign",
                                    "aligned_alloc",
                                    "memalign",
                                    "valloc",
                                    "pvalloc",
                                    "dlopen",
                                    "prctl", /* the way into seccomp, with the next one */
                                    "syscall",
                                    "mmap",
                                    "mmap64",
                                    "munmap",
                                    "mremap",
                                    "brk",
                                    "sbrk",
                                    "_Znwm",
                                    "_Znam",
                                    "_ZnwmRKSt9nothrow_t",
                                    "_ZnamRKSt9nothrow_t",
                                    "_ZnwmSt11align_val_t",
                                    "_ZnamSt11align_val_t",
                                    "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                    "_ZnamSt11align_val_tRKSt9nothrow_t",
                                    "_ZdlPv",
                                    "_ZdaPv",
                                    "_ZdlPvm",
                                    "_ZdaPvm",
                                    "_ZdlPvRKSt9nothrow_t",
                                    "_ZdaPvRKSt9nothrow_t",
                                    "_ZdlPvSt11align_val_t",
                                    "_ZdaPvSt11align_val_t",
                                    "_ZdlPvmSt11align_val_t",
                                    "_ZdaPvmSt11align_val_t",
                                    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                    "_ZdaPvSt11align_val_tRKSt9nothrow_t"};

#define NAMES (sizeof names / sizeof *names)

struct slot {
    uint64_t *at;
    uint64_t was, hook;
    bool sealed; /* in a part that is read-only once relocated */
};

static uint64_t hook[NAMES], usual[NAMES]; /* ours; what the loader has for the name */
static struct slot *slots;                 /* never moved or freed */
static uint32_t slots_used, busy;

struct tables {
    uint64_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t count[2];
    uint64_t sealed_from, sealed_to;
};

/* The loader has made absolute addresses of them, but for modules of its own. */
static uint64_t absolute(uint64_t base, uint64_t address)
{
    return address >= base ? address : base + address;
}

static bool tables_find(const struct dl_phdr_info *info, struct tables *t)
{
    const ElfW(Dyn) *d = NULL;
    *t = (struct tables){.base = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_DYNAMIC)
            d = (const ElfW(Dyn) *)start;
        if (p->p_type == PT_GNU_RELRO) {
            t->sealed_from = start & ~(PAGE - 1);
            t->sealed_to = (start + p->p_memsz) & ~(PAGE - 1);
        }
    }
    for (; d && d->d_tag != DT_NULL; d++) {
        uint64_t at = absolute(t->base, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            t->symbols = (const ElfW(Sym) *)at;
        else if (d->d_tag == DT_STRTAB)
            t->strings = (const char *)at;
        else if (d->d_tag == DT_RELA)
            t->relocations[0] = (const ElfW(Rela) *)at;
        else if (d->d_tag == DT_JMPREL)
            t->relocations[1] = (const ElfW(Rela) *)at;
        else if (d->d_tag == DT_RELASZ)
            t->count[0] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_PLTRELSZ)
            t->count[1] = d->d_un.d_val / sizeof(ElfW(Rela));
    }
    return t->symbols && t->strings;
}

/* Which of the names the relocation is for; NAMES: none, or it is not to be hooked. */
static size_t name_of(const struct tables *t, const ElfW(Rela) * r)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info), symbol = (uint32_t)ELF64_R_SYM(r->r_info);
    if (!symbol || r->r_addend ||
        (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64))
        return NAMES;
    const ElfW(Sym) *s = &t->symbols[symbol];
    const char *name = t->strings + s->st_name;
    /* What a module defines for itself it means to call. */
    if (s->st_shndx != SHN_UNDEF && type == R_X86_64_64)
        return NAMES;
    size_t i = 0;
    while (i < NAMES && strcmp(name, names[i]) != 0)
        i++;
    /* A pointer of the program's that began as this function may lead elsewhere by now. */
    if (i < NAMES && type == R_X86_64_64 && *(const uint64_t *)(t->base + r->r_offset) != usual[i])
        return NAMES;
    return i;
}

static bool store(const struct slot *s, uint64_t value)
{
    uint64_t page = (uint64_t)(uintptr_t)s->at & ~(PAGE - 1);
    if (s->sealed && (agent_quiet || raw3(SYS_mprotect, page, PAGE, PROT_READ | PROT_WRITE) != 0))
        return false;
    __atomic_store_n(s->at, value, __ATOMIC_RELEASE);
    if (s->sealed)
        raw3(SYS_mprotect, page, PAGE, PROT_READ);
    return true;
}

/* Where a slot is kept: in the place of one of a module that lay here before, or in a new one. */
static struct slot *slot_place(const uint64_t *at)
{
    for (uint32_t i = 0; i < slots_used; i++)
        if (slots[i].at == at)
            return &slots[i];
    return slots_used < SLOTS ? &slots[slots_used] : NULL;
}

static void slot_hook(const struct tables *t, const ElfW(Rela) * r, uint64_t to)
{
    struct slot s = {.at = (uint64_t *)(t->base + r->r_offset), .hook = to};
    uint64_t at = (uint64_t)(uintptr_t)s.at;
    s.sealed = at >= t->sealed_from && at < t->sealed_to;
    s.was = __atomic_load_n(s.at, __ATOMIC_ACQUIRE);
    struct slot *place = s.was == to ? NULL : slot_place(s.at);
    if (!place || !store(&s, to))
        return;
    *place = s;
    slots_used += place == &slots[slots_used];
}

static bool module_has(const struct dl_phdr_info *info, uint64_t address)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int module_hook(struct dl_phdr_info *info, size_t size, void *context)
{
    struct tables t;
    (void)size;
    (void)context;
    /* The loader calls no allocator but through words of its own, and the vdso none at all. */
    if (module_has(info, (uint64_t)(uintptr_t)&names) || strstr(info->dlpi_name, "/ld-linux") ||
        strstr(info->dlpi_name, "linux-vdso") || !tables_find(info, &t))
        return 0;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; t.relocations[k] && i < t.count[k]; i++) {
            size_t name = name_of(&t, &t.relocations[k][i]);
            if (name < NAMES && hook[name])
                slot_hook(&t, &t.relocations[k][i], hook[name]);
        }
    return 0;
}

/* Our own functions: a plain reference would find the program's. */
static bool hooks_find(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (hook[0])
        return true;
    if (!dladdr1 || !dladdr1(&names, &info, (void **)&map, RTLD_DL_LINKMAP))
        return false;
    void *self = REAL(dlopen)(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; self && i < NAMES; i++) {
        usual[i] = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
        hook[i] = (uint64_t)(uintptr_t)dlsym(self, names[i]);
    }
    dlerror(); /* for those that are not there */
    return self != NULL;
}

bool got_hook(void)
{
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        return false;
    if (!slots) {
        long at = raw6(SYS_mmap, NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        slots = at < 0 && at > -4096 ? NULL : (struct slot *)at;
    }
    bool done = slots && hooks_find();
    if (done)
        dl_iterate_phdr(module_hook, NULL);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return done;
}

/* Within the callback nobody can unload the module; slots of those that are gone are not touched.
 */
static int module_unhook(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (uint32_t i = 0; i < slots_used; i++) {
        const struct slot *s = &slots[i];
        if (module_has(info, (uint64_t)(uintptr_t)s->at) &&
            __atomic_load_n(s->at, __ATOMIC_ACQUIRE) == s->hook)
            store(s, s->was);
    }
    return 0;
}

bool got_unhook(void)
{
    if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
        return false;
    dl_iterate_phdr(module_unhook, NULL);
    slots_used = 0;
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    return true;
}
