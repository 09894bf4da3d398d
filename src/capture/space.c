/* Mapped code of a process; see space.h. */
#include "capture/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct space *space_new(void)
{
    struct space *s = memory_alloc(sizeof *s);
    s->users = 1;
    return s;
}

struct space *space_share(struct space *s)
{
    s->users++;
    return s;
}

void space_drop(struct space *s)
{
    if (!s || --s->users)
        return;
    unwind_map_release(&s->unwind);
    vector_release(&s->maps);
    free(s);
}

struct space *space_own(struct space *s)
{
    if (s->users == 1)
        return s;
    struct space *copy = space_new();
    vector_reserve(&copy->maps, s->maps.len);
    if (s->maps.len)
        memcpy(copy->maps.data, s->maps.data, s->maps.len * sizeof *s->maps.data);
    copy->maps.len = s->maps.len;
    unwind_map_copy(&copy->unwind, &s->unwind);
    space_drop(s);
    return copy;
}

/* Index of the first mapping that ends after `address`. */
static size_t first_after(const struct space *s, uint64_t address)
{
    size_t low = 0, high = s->maps.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (s->maps.data[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void insert(struct space *s, size_t at, const struct space_mapping *m)
{
    vector_reserve(&s->maps, s->maps.len + 1);
    memmove(s->maps.data + at + 1, s->maps.data + at, (s->maps.len - at) * sizeof *s->maps.data);
    s->maps.data[at] = *m;
    s->maps.len++;
}

void space_map(struct space *s, const struct space_mapping *m, const struct rows *rows)
{
    if (m->end <= m->start)
        return;
    size_t at = first_after(s, m->start);
    if (at < s->maps.len && s->maps.data[at].start < m->start) {
        struct space_mapping tail = s->maps.data[at];
        s->maps.data[at++].end = m->start;
        if (tail.end > m->end) {
            tail.start = m->end;
            insert(s, at, &tail);
        }
    }
    size_t gone = at;
    while (gone < s->maps.len && s->maps.data[gone].end <= m->end)
        gone++;
    if (gone < s->maps.len && s->maps.data[gone].start < m->end)
        s->maps.data[gone].start = m->end;
    if (gone > at && gone < s->maps.len)
        memmove(s->maps.data + at, s->maps.data + gone,
                (s->maps.len - gone) * sizeof *s->maps.data);
    s->maps.len -= gone - at;
    insert(s, at, m);
    struct unwind_module u = {.start = m->start, .end = m->end, .bias = m->bias, .rows = rows};
    unwind_map_add(&s->unwind, &u);
}

const struct space_mapping *space_find(const struct space *s, uint64_t address)
{
    size_t at = first_after(s, address);
    if (at < s->maps.len && s->maps.data[at].start <= address)
        return &s->maps.data[at];
    return NULL;
}
