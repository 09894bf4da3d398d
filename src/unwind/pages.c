/* Growing anonymous mappings; see pages.h. */
#include "unwind/pages.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096u

int pages_reserve(struct pages *pages, size_t size)
{
    if (size <= pages->size)
        return 0;
    if (size > SIZE_MAX / 4)
        return -ENOMEM;
    size_t want = pages->size * 2 > size ? pages->size * 2 : size;
    want = (want + PAGE - 1) & ~(size_t)(PAGE - 1);
    void *data;
    if (pages->data)
        data = mremap(pages->data, pages->size, want, MREMAP_MAYMOVE);
    else
        data = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    pages->data = data;
    pages->size = want;
    return 0;
}

void pages_release(struct pages *pages)
{
    if (pages->data)
        munmap(pages->data, pages->size);
    pages->data = NULL;
    pages->size = 0;
}
