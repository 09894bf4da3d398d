/*
 * Memory that is given back all at once. What an arena hands out lives until
 * arena_release; there is no way to free one piece. Poisoned under ASan after release.
 */
#ifndef SONDE_ARENA_H
#define SONDE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *block; /* newest first */
    size_t used;               /* bytes handed out of the newest block */
    size_t total;              /* bytes held in all blocks */
};

void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned to 8 */
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len);
void arena_release(struct arena *a);

#endif
