/* Choosing and ordering; see listing.h. */
#include "monitor/listing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define KTHREADD 2
#define DEPTH_MAX 64

struct making {
    struct listing *rows;
    const struct watch *watch;
    const struct listing_choice *choice;
    struct watch_task **sorted; /* all, in the wanted order */
    size_t count;
    struct map first, next; /* parent -> its first child in `sorted` + 1; child -> the next + 1 */
};

static int compare_number(double a, double b)
{
    return (a < b) - (a > b); /* the largest first */
}

static int compare(const struct watch_task *a, const struct watch_task *b, enum listing_sort sort)
{
    int c = 0;
    switch (sort) {
    case LISTING_BY_CPU:
        c = compare_number(a->cpu_rate, b->cpu_rate);
        break;
    case LISTING_BY_MEMORY:
        c = compare_number((double)a->rss, (double)b->rss);
        break;
    case LISTING_BY_TIME:
        c = compare_number((double)a->cpu, (double)b->cpu);
        break;
    case LISTING_BY_IO:
        c = compare_number(a->read_rate + a->write_rate, b->read_rate + b->write_rate);
        break;
    case LISTING_BY_FAULTS:
        c = compare_number(a->fault_rate, b->fault_rate);
        break;
    case LISTING_BY_NAME:
        c = strcmp(a->name, b->name);
        break;
    case LISTING_BY_NET:
        c = compare_number(a->net_in + a->net_out, b->net_in + b->net_out);
        break;
    case LISTING_BY_PID:
    case LISTING_SORTS:
        break;
    }
    if (!c)
        c = (a->pid > b->pid) - (a->pid < b->pid);
    return c ? c : (a->tid > b->tid) - (a->tid < b->tid);
}

static int in_order(const void *a, const void *b, void *context)
{
    return compare(*(struct watch_task *const *)a, *(struct watch_task *const *)b,
                   *(const enum listing_sort *)context);
}

static bool is_kernels(const struct watch_task *t)
{
    return t->pid == KTHREADD || t->parent == KTHREADD;
}

static bool holds(const struct watch_task *t, const char *text)
{
    return strstr(t->command, text) || strstr(t->name, text);
}

/* Whether the choice names this one itself. */
static bool is_named(const struct listing_choice *c, const struct watch_task *t)
{
    for (size_t i = 0; i < c->root_count; i++)
        if (t->tid == c->roots[i])
            return true;
    return c->name && t->pid == t->tid && t->pid != getpid() && holds(t, c->name);
}

/* Whether it stands below one that is named, whose tree shows it. */
static bool is_below_named(const struct making *m, const struct watch_task *t)
{
    for (unsigned up = 0; up < DEPTH_MAX; up++) {
        t = watch_find(m->watch, t->parent, t->parent);
        if (!t)
            return false;
        if (is_named(m->choice, t))
            return true;
    }
    return false;
}

/* Whether it starts a tree of its own among those that are shown. */
static bool is_root(const struct making *m, const struct watch_task *t)
{
    const struct listing_choice *c = m->choice;
    if (c->name || c->root_count)
        return is_named(c, t) && (c->alone || !is_below_named(m, t));
    return !watch_find(m->watch, t->parent, t->parent);
}

static void push(struct making *m, struct watch_task *t, unsigned depth, bool last)
{
    const char *filter = m->choice->filter;
    if (filter && *filter && !holds(t, filter))
        return;
    *vector_push(&m->rows->list) = (struct listing_row){
        .task = t, .depth = m->choice->tree && !(filter && *filter) ? depth : 0, .last = last};
}

static void push_tree(struct making *m, size_t at, unsigned depth, struct map *done)
{
    struct watch_task *t = m->sorted[at];
    bool added;
    map_put(done, (uint64_t)t->pid, (uint64_t)t->tid, 1, &added);
    if (!added || depth > DEPTH_MAX || (!m->choice->kernel && is_kernels(t)))
        return;
    const uint64_t *next = map_get(&m->next, at, 0);
    push(m, t, depth, !next || !*next);
    if (t->pid != t->tid || m->choice->alone)
        return;
    const uint64_t *child = map_get(&m->first, (uint64_t)t->pid, 0);
    for (size_t i = child ? *child : 0; i;) {
        push_tree(m, i - 1, depth + 1, done);
        const uint64_t *after = map_get(&m->next, i - 1, 0);
        i = after ? *after : 0;
    }
}

/* Lists of children, from the last up so that each is put in front. */
static void link_children(struct making *m)
{
    for (size_t i = m->count; i > 0; i--) {
        const struct watch_task *t = m->sorted[i - 1];
        uint64_t *first = map_put(&m->first, (uint64_t)t->parent, 0, 0, NULL);
        map_put(&m->next, i - 1, 0, *first, NULL);
        *first = i;
    }
}

/* The tree's order is made first in any case: it says who belongs to the roots. */
void listing_make(struct listing *r, const struct watch *w, const struct listing_choice *c)
{
    struct making m = {.rows = r, .watch = w, .choice = c, .count = w->tasks.len};
    struct map done = {0};
    r->list.len = 0;
    m.sorted = memory_array(m.count + 1, sizeof *m.sorted);
    memcpy(m.sorted, w->tasks.data, m.count * sizeof *m.sorted);
    enum listing_sort sort = c->sort;
    qsort_r(m.sorted, m.count, sizeof *m.sorted, in_order, &sort);
    link_children(&m);
    for (size_t i = 0; i < m.count; i++)
        if (is_root(&m, m.sorted[i]))
            push_tree(&m, i, 0, &done);
    if (!c->tree) {
        for (size_t i = 0; i < r->list.len; i++)
            m.sorted[i] = r->list.data[i].task;
        qsort_r(m.sorted, r->list.len, sizeof *m.sorted, in_order, &sort);
        for (size_t i = 0; i < r->list.len; i++)
            r->list.data[i] = (struct listing_row){.task = m.sorted[i]};
    }
    free(m.sorted);
    map_release(&m.first);
    map_release(&m.next);
    map_release(&done);
}

void listing_release(struct listing *r)
{
    vector_release(&r->list);
}
