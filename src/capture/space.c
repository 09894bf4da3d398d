/* Mapped code of a process; see space.h. */
#include "capture/space.h"

#include <stdlib.h>

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
    ranges_release(&s->maps);
    free(s);
}

struct space *space_own(struct space *s)
{
    if (s->users == 1)
        return s;
    struct space *copy = space_new();
    ranges_copy(&copy->maps, &s->maps);
    unwind_map_copy(&copy->unwind, &s->unwind);
    space_drop(s);
    return copy;
}

void space_map(struct space *s, const struct space_mapping *m, const struct rows *rows)
{
    ranges_put(&s->maps, &(struct range){m->start, m->end, m->bias, {m->module}});
    struct unwind_module u = {.start = m->start, .end = m->end, .bias = m->bias, .rows = rows};
    unwind_map_add(&s->unwind, &u);
}

struct space *space_with(struct space *s, struct module *m, uint64_t start, uint64_t end,
                         uint64_t offset, const struct rows *rows)
{
    struct space_mapping map = {
        .start = start, .end = end, .bias = module_bias(m, start, offset), .module = m};
    struct space *own = space_own(s);
    space_map(own, &map, rows);
    return own;
}

const struct range *space_find(const struct space *s, uint64_t address)
{
    return ranges_find(&s->maps, address);
}
