/* Memory given back all at once; see arena.h. */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ARENA_BLOCK ((size_t)64 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t size;
    char data[];
};

static void add_block(struct arena *a, size_t need)
{
    size_t size = need > ARENA_BLOCK / 4 ? need : ARENA_BLOCK;
    struct arena_block *b = memory_alloc(sizeof *b + size);
    b->size = size;
    b->next = a->block;
    a->block = b;
    a->used = 0;
    a->total += size;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (!a->block || a->block->size - a->used < size)
        add_block(a, size);
    void *p = a->block->data + a->used;
    a->used += size;
    return p;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    char *p = arena_alloc(a, len + 1);
    memcpy(p, text, len);
    return p;
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

void arena_release(struct arena *a)
{
    while (a->block) {
        struct arena_block *next = a->block->next;
        free(a->block);
        a->block = next;
    }
    *a = (struct arena){0};
}
