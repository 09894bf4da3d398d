/*
 * An allocator that any signal handler may interrupt and leave for good: to be preloaded, as
 * programs do with allocators of their own. Nothing is ever given back, calloc and realloc go
 * through malloc by its public name.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE (1ul << 36)

static char *base;
static size_t used;

void *malloc(size_t size)
{
    if (!__atomic_load_n(&base, __ATOMIC_ACQUIRE)) {
        char *none = NULL, *fresh = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!__atomic_compare_exchange_n(&base, &none, fresh, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            munmap(fresh, SIZE);
    }
    size_t room = size < SIZE ? (size + 31) & ~15ul : SIZE;
    size_t at = room < SIZE ? __atomic_fetch_add(&used, room, __ATOMIC_RELAXED) : SIZE;
    if (at + room > SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(base + at, &size, sizeof size);
    return base + at + 16;
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t each)
{
    size_t size;
    if (__builtin_mul_overflow(count, each, &size))
        size = SIZE_MAX;
    return malloc(size);
}

void *realloc(void *block, size_t size)
{
    size_t old = 0;
    void *to = malloc(size);
    if (block)
        memcpy(&old, (char *)block - 16, sizeof old);
    if (to && block)
        memcpy(to, block, old < size ? old : size);
    return to;
}
