/* Heap memory that never fails quietly; see memory.h. */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)8 << 20)
#define PAGE ((uintptr_t)4096)

static void (*out_of_memory)(size_t size);

/* Look-ups in tables of this size wait for the page tables as long as for the memory itself; on
 * huge pages they do not. The system may refuse, and nothing is lost then. */
static void *advise(void *p, size_t size)
{
    uintptr_t from = ((uintptr_t)p + PAGE - 1) & ~(PAGE - 1);
    if (size >= LARGE)
        madvise((void *)from, ((uintptr_t)p + size - from) & ~(PAGE - 1), MADV_HUGEPAGE);
    return p;
}

static void give_up(size_t size)
{
    if (out_of_memory)
        out_of_memory(size);
    abort();
}

void memory_set_handler(void (*handler)(size_t size))
{
    out_of_memory = handler;
}

void *memory_array(size_t count, size_t size)
{
    if (!count || !size)
        count = size = 1;
    void *p = calloc(count, size);
    if (!p)
        give_up(size > SIZE_MAX / count ? SIZE_MAX : count * size);
    return advise(p, count * size);
}

void *memory_alloc(size_t size)
{
    return memory_array(1, size);
}

void *memory_grow(void *old, size_t count, size_t size)
{
    void *p = reallocarray(old, count ? count : 1, size);
    if (!p)
        give_up(size > SIZE_MAX / (count ? count : 1) ? SIZE_MAX : count * size);
    return advise(p, count * size);
}

void *memory_dup(const void *data, size_t size)
{
    void *p = memory_alloc(size ? size : 1);
    if (size)
        memcpy(p, data, size);
    return p;
}

char *memory_strndup(const char *text, size_t len)
{
    char *p = memory_alloc(len + 1);
    memcpy(p, text, len);
    return p;
}

char *memory_strdup(const char *text)
{
    return text ? memory_strndup(text, strlen(text)) : NULL;
}
