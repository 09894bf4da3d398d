/* The allocator behind the hooks; see heap_real.h. */
#include "agent/heap_real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "agent/attach.h"
#include "agent/real.h"

struct heap_real heap_real;
static struct {
    uint64_t start, end;
} code[2]; /* the allocator's, ours */
static uint32_t resolving;

/* A block is preceded by its size. */
_Alignas(64) char heap_store[HEAP_STORE];
static size_t store_used;

void *heap_store_take(size_t size, size_t align)
{
    align = align < 16 ? 16 : align;
    if (size > HEAP_STORE || align > HEAP_STORE)
        return NULL;
    size_t at = __atomic_fetch_add(&store_used, size + align + 16, __ATOMIC_RELAXED);
    if (at + size + align + 16 > HEAP_STORE)
        return NULL;
    uintptr_t block = ((uintptr_t)heap_store + at + 16 + align - 1) & ~(uintptr_t)(align - 1);
    memcpy((char *)block - 8, &size, sizeof size);
    return (void *)block;
}

size_t heap_store_size(const void *block)
{
    size_t size;
    memcpy(&size, (const char *)block - 8, sizeof size);
    return size;
}

size_t heap_store_used(void)
{
    size_t used = __atomic_load_n(&store_used, __ATOMIC_RELAXED);
    return used < HEAP_STORE ? used : HEAP_STORE;
}

/* The executable segment around `context`, an address, goes to where code[] has a 0. */
static int note_code(struct dl_phdr_info *info, size_t size, void *context)
{
    uint64_t address = (uint64_t)(uintptr_t)context;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD || address - start >= p->p_memsz || !(p->p_flags & PF_X))
            continue;
        size_t at = code[0].start ? 1 : 0;
        code[at].start = start;
        code[at].end = start + p->p_memsz;
        return 1;
    }
    return 0;
}

bool heap_real_is_passed_by(void)
{
    void *(*first)(size_t);
    __extension__ first = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    uint64_t address = (uint64_t)(uintptr_t)first;
    if (real_is_way((const void *)(uintptr_t)address))
        return false;
    return code[1].start && address - code[1].start >= code[1].end - code[1].start;
}

bool heap_real_is_inside(uint64_t address)
{
    return address - code[0].start < code[0].end - code[0].start ||
           address - code[1].start < code[1].end - code[1].start;
}

#define LOOK_UP(member, name)                                                                      \
    __extension__ found.member =                                                                   \
        (__typeof__(found.member))(attach_active ? real_defined(name) : dlsym(RTLD_NEXT, name))

bool heap_real_resolve(void)
{
    if (__atomic_load_n(&heap_real.free, __ATOMIC_ACQUIRE))
        return true;
    if (__atomic_exchange_n(&resolving, 1, __ATOMIC_ACQ_REL))
        return false;
    struct heap_real found;
    LOOK_UP(malloc, "malloc");
    LOOK_UP(calloc, "calloc");
    LOOK_UP(realloc, "realloc");
    LOOK_UP(reallocarray, "reallocarray");
    LOOK_UP(free, "free");
    LOOK_UP(posix_memalign, "posix_memalign");
    LOOK_UP(aligned_alloc, "aligned_alloc");
    LOOK_UP(memalign, "memalign");
    LOOK_UP(valloc, "valloc");
    LOOK_UP(pvalloc, "pvalloc");
    dl_iterate_phdr(note_code, __extension__(void *) found.malloc);
    dl_iterate_phdr(note_code, __extension__(void *) heap_real_resolve);
    void (*last)(void *) = found.free;
    found.free = NULL;
    heap_real = found;
    __atomic_store_n(&heap_real.free, last, __ATOMIC_RELEASE);
    return true;
}
