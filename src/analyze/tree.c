/*
 * Builds the merged call tree. Each stack node is placed once per group (all, a
 * process, or a thread): its parent's place is remembered, so the work is that of the stack
 * nodes and not that of the samples times their depth. See tree.h.
 */
#include "analyze/tree_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct builder {
    struct tree *t;
    const struct selection *s;
    const struct tree_options *o;
    struct tree_steps steps;
    uint32_t no_stack; /* symbol */
    uint32_t *stamp;   /* stack -> group it was placed in last */
    uint32_t group;
    VECTOR(uint32_t) path;
};

static void builder_init(struct builder *b, struct tree *t, const struct selection *s,
                         const struct tree_options *o)
{
    const struct profile *p = s->profile;
    *b = (struct builder){.t = t, .s = s, .o = o, .no_stack = TREE_NONE};
    b->stamp = memory_array(p->stacks.len, sizeof *b->stamp);
    tree_steps_init(&b->steps, t, s->no_inline, o);
}

static void builder_release(struct builder *b)
{
    tree_steps_release(&b->steps);
    free(b->stamp);
    vector_release(&b->path);
}

static void slots_grow(struct tree *t)
{
    free(t->slots);
    size_t count = t->mask ? (t->mask + 1) * 4 : 1024;
    t->mask = count - 1;
    t->slots = memory_array(count, sizeof *t->slots);
    for (size_t i = 1; i < t->nodes.len; i++) {
        const struct tree_node *n = &t->nodes.data[i];
        size_t at = hash_mix(n->parent, n->symbol) & t->mask;
        while (t->slots[at])
            at = (at + 1) & t->mask;
        t->slots[at] = (uint32_t)i + 1;
    }
}

static uint32_t node_add(struct tree *t, uint32_t parent, struct step step)
{
    uint32_t node = (uint32_t)t->nodes.len;
    struct tree_node *n = vector_push(&t->nodes);
    struct tree_node *above = &t->nodes.data[parent];
    *n = (struct tree_node){.parent = parent,
                            .first_child = TREE_NONE,
                            .next = above->first_child,
                            .symbol = step.symbol,
                            .depth = above->depth + 1,
                            .line = step.line,
                            .inlined = step.inlined};
    above->first_child = node;
    if (n->depth > t->depth)
        t->depth = n->depth;
    return node;
}

/* Where the child of `parent` with that symbol is, or would be put. */
static size_t slot_of(const struct tree *t, uint32_t parent, uint32_t symbol)
{
    size_t at = hash_mix(parent, symbol) & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const struct tree_node *n = &t->nodes.data[t->slots[at] - 1];
        if (n->parent == parent && n->symbol == symbol)
            break;
    }
    return at;
}

/* The child of `parent` that stands for the step, made if it is new. */
static uint32_t child(struct tree *t, uint32_t parent, struct step step)
{
    if (t->nodes.len * 2 >= t->mask)
        slots_grow(t);
    size_t at = slot_of(t, parent, step.symbol);
    if (t->slots[at]) {
        struct tree_node *n = &t->nodes.data[t->slots[at] - 1];
        if (n->line != step.line)
            n->line = 0;
        n->inlined = n->inlined && step.inlined;
        return t->slots[at] - 1;
    }
    uint32_t node = node_add(t, parent, step);
    t->slots[at] = node + 1;
    return node;
}

/* One step down, unless the bound of depth is met or a run of one nameless module goes on. */
static uint32_t descend(struct builder *b, uint32_t base, uint32_t node, struct step step)
{
    struct tree *t = b->t;
    if (b->o->depth && t->nodes.data[node].depth - t->nodes.data[base].depth >= b->o->depth)
        return node;
    if (b->o->by_module && node != base && t->nodes.data[node].symbol == step.symbol &&
        t->symbols.data[step.symbol].without_name)
        return node;
    return child(t, node, step);
}

static uint32_t place_down(struct builder *b, uint32_t base, uint32_t stack)
{
    const struct profile_stack *stacks = b->t->profile->stacks.data;
    b->path.len = 0;
    for (; stack && b->stamp[stack] != b->group; stack = stacks[stack].parent)
        *vector_push(&b->path) = stack;
    uint32_t node = stack ? b->t->stack_node[stack] : base;
    while (b->path.len) {
        stack = b->path.data[--b->path.len];
        uint32_t frame = stacks[stack].frame;
        for (uint32_t i = b->steps.first[frame]; i < b->steps.first[frame + 1]; i++)
            node = descend(b, base, node, b->steps.steps.data[i]);
        b->t->stack_node[stack] = node;
        b->stamp[stack] = b->group;
    }
    return node;
}

/* From the innermost function to its callers. */
static uint32_t place_up(struct builder *b, uint32_t base, uint32_t stack)
{
    const struct profile_stack *stacks = b->t->profile->stacks.data;
    if (b->stamp[stack] == b->group)
        return b->t->stack_node[stack];
    uint32_t node = base;
    for (uint32_t s = stack; s; s = stacks[s].parent) {
        uint32_t frame = stacks[s].frame;
        for (uint32_t i = b->steps.first[frame + 1]; i > b->steps.first[frame]; i--)
            node = descend(b, base, node, b->steps.steps.data[i - 1]);
    }
    b->t->stack_node[stack] = node;
    b->stamp[stack] = b->group;
    return node;
}

static uint32_t place_empty(struct builder *b, uint32_t base)
{
    if (b->no_stack == TREE_NONE)
        b->no_stack = tree_symbol_add(b->t, TREE_CODE, "[no stack]");
    return child(b->t, base, (struct step){.symbol = b->no_stack});
}

/* The leaf under a stack that says what it waited for. */
static uint32_t place_wait(struct builder *b, uint32_t node, uint32_t event)
{
    const struct profile *p = b->t->profile;
    uint32_t *symbol = &b->t->event_symbol[event];
    if (*symbol == TREE_NONE)
        *symbol = tree_symbol_add(b->t, TREE_WAIT, profile_text(p, p->events.data[event].name));
    return child(b->t, node, (struct step){.symbol = *symbol});
}

static uint32_t place(struct builder *b, uint32_t base, uint32_t stack)
{
    if (!stack)
        return place_empty(b, base);
    return b->o->callers ? place_up(b, base, stack) : place_down(b, base, stack);
}

static void count_cell(struct builder *b, uint32_t base, const struct profile_cell *c)
{
    struct tree *t = b->t;
    uint32_t node = place(b, base, c->stack);
    if (b->o->waits && !b->o->callers && selection_event_waits(t->profile, c->event))
        node = place_wait(b, node, c->event);
    t->nodes.data[node].self += c->value;
    t->nodes.data[node].self_count += c->count;
}

static uint32_t place_level(struct builder *b, uint32_t parent, enum tree_level level,
                            const char *name, int32_t id)
{
    return child(b->t, parent,
                 (struct step){.symbol = tree_symbol_numbered(b->t, level, name, id)});
}

/* The node under which the stacks of a thread stand. */
static uint32_t base_of(struct builder *b, uint32_t thread, uint32_t *process_node)
{
    const struct profile *p = b->t->profile;
    const struct profile_thread *th = &p->threads.data[thread];
    uint32_t base = 0, *of_process = &process_node[th->process];
    if (b->o->by_process) {
        if (*of_process == TREE_NONE)
            *of_process = place_level(b, 0, TREE_PROCESS, profile_process_name(p, th->process),
                                      p->processes.data[th->process].pid);
        base = *of_process;
    }
    if (b->o->by_thread)
        base = place_level(b, base, TREE_THREAD, profile_text(p, th->name), th->tid);
    return base;
}

/* Cells ordered by the group of their thread, so that a group's stacks are placed together. */
static const struct profile_cell **cells_by_group(const struct selection *s, bool by_thread,
                                                  size_t *count)
{
    const struct profile *p = s->profile;
    size_t groups = by_thread ? p->threads.len : p->processes.len, cursor = 0;
    size_t *at = memory_array(groups + 2, sizeof *at);
    const struct profile_cell **cells = memory_array(p->cells.len + 1, sizeof *cells), *c;
    while ((c = selection_next(s, &cursor)))
        at[(by_thread ? c->thread : p->threads.data[c->thread].process) + 1]++;
    for (size_t i = 0; i <= groups; i++)
        at[i + 1] += at[i];
    *count = at[groups];
    for (cursor = 0; (c = selection_next(s, &cursor));)
        cells[at[by_thread ? c->thread : p->threads.data[c->thread].process]++] = c;
    free(at);
    return cells;
}

static void count_groups(struct builder *b)
{
    const struct profile *p = b->t->profile;
    size_t count;
    const struct profile_cell **cells = cells_by_group(b->s, b->o->by_thread, &count);
    uint32_t *process_node = tree_array_of_none(p->processes.len), base = 0, last = PROFILE_NONE;
    for (size_t i = 0; i < count; i++) {
        uint32_t thread = cells[i]->thread;
        uint32_t group = b->o->by_thread ? thread : p->threads.data[thread].process;
        if (group != last) {
            base = base_of(b, thread, process_node);
            b->group++;
        }
        last = group;
        count_cell(b, base, cells[i]);
    }
    free(process_node);
    free(cells);
}

static void count_cells(struct builder *b)
{
    size_t cursor = 0;
    b->group = 1;
    for (const struct profile_cell *c; (c = selection_next(b->s, &cursor));)
        count_cell(b, 0, c);
}

/* What the threads have in common is added up first, and stacks are placed in the order of their
 * indices: cells are many, and stand in the order of time. */
static void count_stacks(struct builder *b)
{
    struct tree *t = b->t;
    size_t cursor = 0, stacks = t->profile->stacks.len;
    struct sum {
        uint64_t value, count;
    } *sums = memory_array(stacks, sizeof *sums);
    for (const struct profile_cell *c; (c = selection_next(b->s, &cursor));) {
        sums[c->stack].value += c->value;
        sums[c->stack].count += c->count;
    }
    b->group = 1;
    for (uint32_t i = 0; i < stacks; i++) {
        if (!sums[i].count && !sums[i].value)
            continue;
        uint32_t node = place(b, 0, i);
        t->nodes.data[node].self += sums[i].value;
        t->nodes.data[node].self_count += sums[i].count;
    }
    free(sums);
}

static void sum_up(struct tree *t)
{
    for (size_t i = t->nodes.len; i-- > 0;) {
        struct tree_node *n = &t->nodes.data[i];
        n->total += n->self;
        n->total_count += n->self_count;
        if (i) {
            t->nodes.data[n->parent].total += n->total;
            t->nodes.data[n->parent].total_count += n->total_count;
        }
    }
}

void tree_init(struct tree *t, const struct selection *s, const struct tree_options *o)
{
    static const struct tree_options none;
    struct builder b;
    *t = (struct tree){.profile = s->profile};
    t->stack_node = tree_array_of_none(s->profile->stacks.len);
    t->event_symbol = tree_array_of_none(s->profile->events.len);
    builder_init(&b, t, s, o ? o : &none);
    *vector_push(&t->nodes) = (struct tree_node){.parent = TREE_NONE,
                                                 .first_child = TREE_NONE,
                                                 .next = TREE_NONE,
                                                 .symbol = tree_symbol_add(t, TREE_ROOT, "all")};
    if (b.o->by_process || b.o->by_thread)
        count_groups(&b);
    else if (b.o->waits)
        count_cells(&b);
    else
        count_stacks(&b);
    sum_up(t);
    builder_release(&b);
}

void tree_init_empty(struct tree *t, const struct tree *like)
{
    *t = (struct tree){.profile = like->profile};
    vector_reserve(&t->symbols, like->symbols.len);
    memcpy(t->symbols.data, like->symbols.data, like->symbols.len * sizeof *t->symbols.data);
    t->symbols.len = like->symbols.len;
    *vector_push(&t->nodes) = (struct tree_node){.parent = TREE_NONE,
                                                 .first_child = TREE_NONE,
                                                 .next = TREE_NONE,
                                                 .symbol = like->nodes.data[0].symbol};
}

uint32_t tree_child(struct tree *t, uint32_t parent, uint32_t symbol)
{
    return child(t, parent, (struct step){.symbol = symbol});
}

void tree_release(struct tree *t)
{
    vector_release(&t->symbols);
    vector_release(&t->nodes);
    free(t->slots);
    free(t->stack_node);
    free(t->event_symbol);
    arena_release(&t->arena);
}

struct ordering {
    const struct tree *t;
    enum tree_order order;
};

static int compare_nodes(const void *left, const void *right, void *context)
{
    const struct ordering *by = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct tree_node *x = &by->t->nodes.data[a], *y = &by->t->nodes.data[b];
    uint64_t vx = by->order == TREE_BY_SELF ? x->self : x->total;
    uint64_t vy = by->order == TREE_BY_SELF ? y->self : y->total;
    if (by->order != TREE_BY_NAME && vx != vy)
        return vx < vy ? 1 : -1;
    int names = strcmp(tree_symbol(by->t, a)->name, tree_symbol(by->t, b)->name);
    return names ? names : (a > b) - (a < b);
}

void tree_sort(struct tree *t, enum tree_order order)
{
    struct ordering by = {t, order};
    VECTOR(uint32_t) children = {0};
    for (size_t i = 0; i < t->nodes.len; i++) {
        struct tree_node *n = &t->nodes.data[i];
        children.len = 0;
        for (uint32_t c = n->first_child; c != TREE_NONE; c = t->nodes.data[c].next)
            *vector_push(&children) = c;
        if (children.len < 2)
            continue;
        qsort_r(children.data, children.len, sizeof *children.data, compare_nodes, &by);
        n->first_child = children.data[0];
        for (size_t c = 0; c < children.len; c++)
            t->nodes.data[children.data[c]].next =
                c + 1 < children.len ? children.data[c + 1] : TREE_NONE;
    }
    vector_release(&children);
}

uint32_t tree_node_of(const struct tree *t, uint32_t event, uint32_t stack)
{
    uint32_t node = t->stack_node[stack], wait = t->event_symbol[event];
    if (node == TREE_NONE || wait == TREE_NONE)
        return node;
    uint32_t leaf = t->slots[slot_of(t, node, wait)];
    return leaf ? leaf - 1 : TREE_NONE;
}

void tree_place(const struct tree *t, uint32_t node, struct text *out)
{
    tree_symbol_place(t, tree_symbol(t, node), t->nodes.data[node].line, out);
}
