/* See self.h. */
#include "self.h"

#include <link.h>
#include <pthread.h>
#include <stdlib.h>

static int add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    static struct rows kept[64];
    static size_t count;
    struct rows *rows = &kept[count];
    if (count == 64 || rows_read_loaded(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, rows))
        return 0;
    count++;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        struct unwind_module m = {.start = start & ~4095ull,
                                  .end = (start + p->p_memsz + 4095) & ~4095ull,
                                  .bias = info->dlpi_addr,
                                  .rows = rows};
        if (p->p_type == PT_LOAD && p->p_flags & PF_X)
            unwind_map_add(ctx, &m);
    }
    return 0;
}

void self_map(struct unwind_map *map)
{
    dl_iterate_phdr(add_module, map);
}

uint64_t self_stack_end(void)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    return (uint64_t)low + size;
}
