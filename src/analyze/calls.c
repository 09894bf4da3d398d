/* Adding up the tree of calls; see calls.h. */
#include "analyze/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct walk {
    struct calls *c;
    const struct profile *p;
    uint64_t *count, *self, *total; /* by stack */
    uint32_t *first_child, *next;
    uint32_t *function; /* by frame: in c->functions, PROFILE_NONE until asked for */
};

static uint32_t function_of(struct walk *w, uint32_t frame)
{
    if (w->function[frame] != PROFILE_NONE)
        return w->function[frame];
    const struct profile_frame *f = &w->p->frames.data[frame];
    uint32_t function = PROFILE_NONE;
    if (f->location_count)
        function = w->p->locations.data[f->first_location + f->location_count - 1].function;
    bool added, named = function != PROFILE_NONE;
    uint64_t *at = map_put(&w->c->function_index, named ? function : frame, named,
                           w->c->functions.len, &added);
    uint32_t index = (uint32_t)*at;
    if (added)
        *vector_push(&w->c->functions) =
            (struct calls_function){.function = function, .frame = frame};
    return w->function[frame] = index;
}

static struct calls_sum *edge_of(struct walk *w, uint32_t caller, uint32_t callee)
{
    bool added;
    uint64_t *at = map_put(&w->c->edge_index, caller, callee, w->c->edges.len, &added);
    uint64_t index = *at;
    if (added)
        *vector_push(&w->c->edges) = (struct calls_edge){.caller = caller, .callee = callee};
    return &w->c->edges.data[index].sum;
}

static void walk_init(struct walk *w, struct calls *c, const struct selection *s)
{
    const struct profile *p = s->profile;
    size_t stacks = p->stacks.len, cursor = 0;
    *w = (struct walk){.c = c, .p = p};
    w->count = memory_array(stacks, sizeof *w->count);
    w->self = memory_array(stacks, sizeof *w->self);
    w->total = memory_array(stacks, sizeof *w->total);
    w->first_child = memory_array(stacks, sizeof *w->first_child);
    w->next = memory_array(stacks, sizeof *w->next);
    w->function = memory_array(p->frames.len + 1, sizeof *w->function);
    memset(w->function, 0xff, (p->frames.len + 1) * sizeof *w->function);
    for (const struct profile_cell *x; (x = selection_next(s, &cursor));) {
        w->count[x->stack] += x->count;
        w->self[x->stack] += x->value;
    }
    bool *used = memory_array(stacks, sizeof *used);
    for (uint32_t i = (uint32_t)stacks; i-- > 1;) {
        uint32_t parent = p->stacks.data[i].parent;
        used[i] = used[i] || w->count[i] || w->self[i];
        w->total[i] += w->self[i];
        if (!used[i])
            continue;
        used[parent] = true;
        w->total[parent] += w->total[i];
        w->next[i] = w->first_child[parent];
        w->first_child[parent] = i;
    }
    free(used);
}

static void walk_release(struct walk *w)
{
    free(w->count);
    free(w->self);
    free(w->total);
    free(w->first_child);
    free(w->next);
    free(w->function);
}

static void sum_enter(struct calls_sum *s, const struct walk *w, uint32_t stack)
{
    bool primitive = s->open++ == 0;
    s->calls += w->count[stack];
    s->self += w->self[stack];
    s->primitive += primitive ? w->count[stack] : 0;
    s->total += primitive ? w->total[stack] : 0;
}

static void node_enter(struct walk *w, uint32_t stack)
{
    const struct profile_stack *at = &w->p->stacks.data[stack];
    uint32_t callee = function_of(w, at->frame);
    struct calls_sum *s = &w->c->functions.data[callee].sum;
    w->c->count += w->count[stack];
    w->c->primitive += s->open ? 0 : w->count[stack];
    w->c->time += w->self[stack];
    sum_enter(s, w, stack);
    if (at->parent)
        sum_enter(edge_of(w, function_of(w, w->p->stacks.data[at->parent].frame), callee), w,
                  stack);
}

static void node_leave(struct walk *w, uint32_t stack)
{
    const struct profile_stack *at = &w->p->stacks.data[stack];
    uint32_t callee = function_of(w, at->frame);
    w->c->functions.data[callee].sum.open--;
    if (at->parent)
        edge_of(w, function_of(w, w->p->stacks.data[at->parent].frame), callee)->open--;
}

void calls_init(struct calls *c, const struct selection *s)
{
    struct walk w;
    *c = (struct calls){0};
    walk_init(&w, c, s);
    uint32_t at = w.first_child[0];
    while (at) {
        node_enter(&w, at);
        if (w.first_child[at]) {
            at = w.first_child[at];
            continue;
        }
        while (at) {
            node_leave(&w, at);
            if (w.next[at]) {
                at = w.next[at];
                break;
            }
            at = w.p->stacks.data[at].parent;
        }
    }
    walk_release(&w);
}

void calls_release(struct calls *c)
{
    vector_release(&c->functions);
    vector_release(&c->edges);
    map_release(&c->function_index);
    map_release(&c->edge_index);
}

bool calls_recorded(const struct profile *p)
{
    return profile_event_find(p, "calls") != PROFILE_NONE;
}

void calls_name(const struct profile *p, const struct calls_function *f, struct text *out)
{
    if (f->function == PROFILE_NONE) {
        const struct profile_frame *frame = &p->frames.data[f->frame];
        text_format(out, "[%s+0x%llx]", profile_module_name(p, frame->module),
                    (unsigned long long)frame->address);
        return;
    }
    const struct profile_function *fn = &p->functions.data[f->function];
    const char *name = profile_text(p, fn->name), *file = profile_text(p, fn->file);
    const char *slash = strrchr(file, '/');
    enum code_kind kind =
        fn->module < p->modules.len ? p->modules.data[fn->module].kind : CODE_UNKNOWN;
    if (*file)
        text_format(out, "%s:%u(%s)", slash && slash[1] ? slash + 1 : file, fn->start_line, name);
    else if (kind == CODE_ELF)
        text_format(out, "%s (%s)", name, profile_module_name(p, fn->module));
    else
        text_add(out, name);
}
