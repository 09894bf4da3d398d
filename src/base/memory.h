/*
 * Heap memory for everything but the agent. These never return NULL: when the
 * system has no more, the handler that main.c installs says so and ends the
 * program (default: abort). Sizes that outside data decides must be bounded first.
 */
#ifndef SONDE_MEMORY_H
#define SONDE_MEMORY_H

#include <stddef.h>

void *memory_alloc(size_t size);                         /* zeroed */
void *memory_array(size_t count, size_t size);           /* zeroed, overflow-checked */
void *memory_grow(void *old, size_t count, size_t size); /* realloc of an array, not zeroed */
void *memory_dup(const void *data, size_t size);
char *memory_strdup(const char *text); /* NULL gives NULL */
char *memory_strndup(const char *text, size_t len);

/* Called with the size that could not be had; must not return. */
void memory_set_handler(void (*handler)(size_t size));

#endif
