/*
 * What each source line cost. One pass adds the samples of every stack up to its
 * parents, a second walks the stacks as a tree and counts each line once on the way down.
 * See lines.h.
 */
#include "analyze/lines.h"

#include <stdlib.h>

#include "base/memory.h"

struct walk {
    const struct selection *s;
    struct lines *l;
    uint32_t *key;                   /* by location: its line, or PROFILE_NONE */
    uint64_t *value, *count;         /* by stack: of samples that end there */
    uint64_t *value_all, *count_all; /* ... and of those below it */
    uint32_t *first_child, *next;    /* 0: none */
    uint32_t *open;                  /* by line: how often on the way */
};

static uint32_t key_of(struct lines *l, const struct profile *p, const struct profile_location *at,
                       bool by_function)
{
    const struct profile_function *f = &p->functions.data[at->function];
    if (!at->line || !f->file)
        return PROFILE_NONE;
    bool added;
    uint64_t *found =
        map_put(&l->index, by_function ? at->function : f->file, at->line, l->lines.len, &added);
    if (added)
        *vector_push(&l->lines) = (struct line){.function = at->function, .number = at->line};
    return (uint32_t)*found;
}

static void walk_init(struct walk *w, const struct selection *s, struct lines *l, bool by_function)
{
    const struct profile *p = s->profile;
    size_t stacks = p->stacks.len;
    *w = (struct walk){.s = s, .l = l};
    w->key = memory_array(p->locations.len + 1, sizeof *w->key);
    for (size_t i = 0; i < p->locations.len; i++)
        w->key[i] = key_of(l, p, &p->locations.data[i], by_function);
    w->value = memory_array(stacks, sizeof *w->value);
    w->count = memory_array(stacks, sizeof *w->count);
    w->value_all = memory_array(stacks, sizeof *w->value_all);
    w->count_all = memory_array(stacks, sizeof *w->count_all);
    w->first_child = memory_array(stacks, sizeof *w->first_child);
    w->next = memory_array(stacks, sizeof *w->next);
    w->open = memory_array(l->lines.len + 1, sizeof *w->open);
    size_t cursor = 0;
    for (const struct profile_cell *c; (c = selection_next(s, &cursor));) {
        w->value[c->stack] += c->value;
        w->count[c->stack] += c->count;
    }
    for (uint32_t i = (uint32_t)stacks; i-- > 1;) {
        uint32_t parent = p->stacks.data[i].parent;
        w->value_all[i] += w->value[i];
        w->count_all[i] += w->count[i];
        w->value_all[parent] += w->value_all[i];
        w->count_all[parent] += w->count_all[i];
        w->next[i] = w->first_child[parent];
        w->first_child[parent] = i;
    }
}

static void walk_release(struct walk *w)
{
    free(w->key);
    free(w->value);
    free(w->count);
    free(w->value_all);
    free(w->count_all);
    free(w->first_child);
    free(w->next);
    free(w->open);
}

/* The locations of a stack's frame that count: all, or the outermost alone. */
static uint32_t locations_of(const struct walk *w, uint32_t stack, uint32_t *count)
{
    const struct profile *p = w->s->profile;
    const struct profile_frame *f = &p->frames.data[p->stacks.data[stack].frame];
    bool one = w->s->no_inline && f->location_count;
    *count = one ? 1 : f->location_count;
    return one ? f->first_location + f->location_count - 1 : f->first_location;
}

static void charge_self(struct walk *w, uint32_t stack)
{
    uint32_t count = 0, first = stack ? locations_of(w, stack, &count) : 0;
    uint32_t key = count ? w->key[first] : PROFILE_NONE;
    if (key == PROFILE_NONE) {
        w->l->self += w->value[stack];
        w->l->self_count += w->count[stack];
        return;
    }
    w->l->lines.data[key].cost.self += w->value[stack];
    w->l->lines.data[key].cost.self_count += w->count[stack];
}

static void enter(struct walk *w, uint32_t stack)
{
    uint32_t count, first = locations_of(w, stack, &count);
    charge_self(w, stack);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = w->key[first + i];
        if (key == PROFILE_NONE || w->open[key]++)
            continue;
        w->l->lines.data[key].cost.total += w->value_all[stack];
        w->l->lines.data[key].cost.total_count += w->count_all[stack];
    }
}

static void leave(struct walk *w, uint32_t stack)
{
    uint32_t count, first = locations_of(w, stack, &count);
    for (uint32_t i = 0; i < count; i++)
        if (w->key[first + i] != PROFILE_NONE)
            w->open[w->key[first + i]]--;
}

void lines_init(struct lines *l, const struct selection *s, bool by_function)
{
    struct walk w;
    *l = (struct lines){0};
    walk_init(&w, s, l, by_function);
    charge_self(&w, 0);
    uint32_t at = w.first_child[0];
    while (at) {
        enter(&w, at);
        if (w.first_child[at]) {
            at = w.first_child[at];
            continue;
        }
        for (leave(&w, at); !w.next[at] && s->profile->stacks.data[at].parent; leave(&w, at))
            at = s->profile->stacks.data[at].parent;
        at = w.next[at];
    }
    walk_release(&w);
}

void lines_release(struct lines *l)
{
    vector_release(&l->lines);
    map_release(&l->index);
}
