/* The answers being gathered for one request; see symbol_internal.h. */
#include "symbol/symbol_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void answers_init(struct answers *a, const struct symbol_request *request)
{
    *a = (struct answers){.address = request->address, .count = request->count};
    a->item = memory_array(a->count ? a->count : 1, sizeof *a->item);
    a->open = a->count;
}

void answers_release(struct answers *a)
{
    free(a->item);
    arena_release(&a->arena);
    names_release(&a->strings);
    *a = (struct answers){0};
}

const char *answers_keep(struct answers *a, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strnlen(text, SYMBOL_TEXT_MAX - 1);
    uint32_t index = names_add_len(&a->strings, text, len);
    return a->strings.text[index];
}

size_t answers_from(const struct answers *a, uint64_t address)
{
    size_t low = 0, n = a->count;
    while (n > 0) {
        size_t half = n / 2;
        if (a->address[low + half] < address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

struct symbol_location *answers_place(struct answers *a, size_t index, size_t n)
{
    struct answer *answer = &a->item[index];
    answer->location = arena_alloc(&a->arena, n * sizeof *answer->location);
    answer->n = (uint32_t)n;
    return answer->location;
}

void answers_mark_named(struct answers *a, size_t index)
{
    if (a->item[index].named)
        return;
    a->item[index].named = true;
    a->open--;
}

void answers_name(struct answers *a, size_t index, const char *linkage, uint64_t start)
{
    struct answer *answer = &a->item[index];
    if (answer->named || !linkage || !*linkage)
        return;
    struct symbol_location *l = answer->n ? answer->location : answers_place(a, index, 1);
    l->linkage = answers_keep(a, linkage);
    l->start = start;
    answers_mark_named(a, index);
}
