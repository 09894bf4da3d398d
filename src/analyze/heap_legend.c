/* Who held what at the numbered peaks of a picture of curves; see curves.h. */
#include <stdlib.h>

#include "analyze/curves.h"
#include "analyze/heap_internal.h"
#include "base/memory.h"

#define LINES_MAX 20 /* of one peak */

/* "N: thread>file:line:function=>bytes" */
static void put_line(struct text *out, size_t number, const struct profile *p, uint32_t thread,
                     const struct tree *t, uint32_t node, uint64_t bytes)
{
    struct text place = TEXT_INIT;
    const char *name = profile_text(p, p->threads.data[thread].name);
    text_format(out, "%zu: ", number);
    text_add_printable(out, *name ? name : "?");
    text_add_char(out, '>');
    if (node)
        tree_place(t, node, &place);
    text_add_printable(out, place.len ? place.data : "?");
    text_add_char(out, ':');
    text_add_printable(out, node ? tree_symbol(t, node)->name : "?");
    text_format(out, "=>%llu\n", (unsigned long long)bytes);
    text_release(&place);
}

static void put_thread(struct text *out, size_t number, const struct selection *s, uint32_t thread)
{
    struct selection one;
    struct tree tree;
    size_t count = 0;
    selection_init_event(&one, s, "heap:peak");
    for (size_t i = 0; i < s->profile->threads.len; i++)
        one.thread[i] = i == thread;
    selection_add_up(&one);
    tree_init(&tree, &one, &(struct tree_options){.callers = true, .by_module = true, .depth = 1});
    tree_sort(&tree, TREE_BY_TOTAL);
    for (uint32_t c = tree.nodes.data[0].first_child; c != TREE_NONE && count < LINES_MAX;
         c = tree.nodes.data[c].next, count++)
        put_line(out, number, s->profile, thread, &tree, c, tree.nodes.data[c].total);
    tree_release(&tree);
    selection_release(&one);
}

void curves_legend(const struct curves *c, const struct selection *s, size_t shown,
                   struct text *out)
{
    const struct profile *p = s->profile;
    size_t number = 0;
    for (size_t i = 0; i < c->all.len && i < shown; i++) {
        const struct curve *at = &c->all.data[i];
        if (at->rss || at->thread != PROFILE_NONE)
            continue;
        number++;
        for (uint32_t t = 0; t < p->threads.len; t++)
            if (p->threads.data[t].process == at->process && s->thread[t])
                put_thread(out, number, s, t);
    }
}
