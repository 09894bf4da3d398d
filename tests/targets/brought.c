/* A library that changes unloads. */
#include <stdlib.h>

void *brought(size_t size);

void *brought(size_t size)
{
    void *volatile block = malloc(size);
    free(block);
    return malloc(size);
}
