/*
 * The allocator behind the hooks: the next in the program's order of libraries (libc's, or one
 * that is linked or preloaded). Looking it up may itself allocate; such calls, and any that come
 * before, are served from a small store of our own, whose blocks are never given back.
 */
#ifndef SONDE_AGENT_HEAP_REAL_H
#define SONDE_AGENT_HEAP_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};

extern struct heap_real heap_real;

/* Whether the functions are there, looking them up if nobody did. False while that is under way. */
bool heap_real_resolve(void);

/* The same for C++'s functions, if there are any yet; see heap_new.c. */
void heap_new_resolve(void);

/* Whether calls of malloc go past us: the program itself defines it. */
bool heap_real_is_passed_by(void);

/* Whether `address` is code of the allocator, or of ours: it left by a jump then. */
bool heap_real_is_inside(uint64_t address);

#define HEAP_STORE 65536
extern char heap_store[HEAP_STORE];

void *heap_store_take(size_t size, size_t align); /* NULL when it is used up */

static inline bool heap_store_has(const void *block)
{
    return (uintptr_t)block - (uintptr_t)heap_store < HEAP_STORE;
}

size_t heap_store_size(const void *block);
size_t heap_store_used(void); /* bytes from its beginning */

#endif
