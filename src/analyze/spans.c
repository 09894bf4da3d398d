/* Level of detail for spans; see spans.h. */
#include "analyze/spans.h"

#include <string.h>

#include "base/memory.h"

#define BLOCK 512
#define LEAST_FIRST 1000 /* ns: where widening begins */

/* Narrow spans of one depth that stand together so far. */
struct run {
    struct spans_box box;
    uint64_t longest;
    bool begun;
};

struct showing {
    const struct profile *profile;
    const struct spans_window *window;
    struct spans_boxes *out;
    VECTOR(struct run) runs; /* by depth */
};

void spans_init(struct spans *s, const struct profile *p)
{
    *s = (struct spans){.profile = p};
    spans_update(s);
}

void spans_release(struct spans *s)
{
    for (size_t i = 0; i < s->tracks.len; i++) {
        vector_release(&s->tracks.data[i].list);
        vector_release(&s->tracks.data[i].blocks);
    }
    vector_release(&s->tracks);
}

static void measure(const struct profile *p, struct spans_track *t, size_t block)
{
    struct spans_block *b = &t->blocks.data[block];
    *b = (struct spans_block){0};
    for (size_t i = block * BLOCK; i < t->list.len && i < (block + 1) * BLOCK; i++) {
        const struct profile_span *s = &p->spans.data[t->list.data[i]];
        b->open |= !s->end;
        b->last = s->end > b->last ? s->end : b->last;
    }
}

static void add(struct spans *s, uint32_t index)
{
    uint32_t thread = s->profile->spans.data[index].thread;
    while (s->tracks.len <= thread)
        *vector_push(&s->tracks) = (struct spans_track){0};
    struct spans_track *t = &s->tracks.data[thread];
    if (t->list.len % BLOCK == 0)
        *vector_push(&t->blocks) = (struct spans_block){0};
    *vector_push(&t->list) = index;
    t->blocks.data[t->blocks.len - 1].open = true;
}

void spans_update(struct spans *s)
{
    for (; s->seen < s->profile->spans.len; s->seen++)
        add(s, (uint32_t)s->seen);
    for (size_t i = 0; i < s->tracks.len; i++)
        for (size_t k = 0; k < s->tracks.data[i].blocks.len; k++)
            if (s->tracks.data[i].blocks.data[k].open)
                measure(s->profile, &s->tracks.data[i], k);
}

static void put_run(struct showing *w, struct run *r)
{
    if (r->begun)
        *vector_push(&w->out->all) = r->box;
    *r = (struct run){0};
}

static struct run *run_at(struct showing *w, uint32_t depth)
{
    while (w->runs.len <= depth)
        *vector_push(&w->runs) = (struct run){0};
    return &w->runs.data[depth];
}

/* A mark beside other narrow spans is one of them. */
static void put_narrow(struct showing *w, const struct spans_box *box)
{
    struct run *r = run_at(w, box->depth);
    uint64_t width = box->end - box->start;
    if (r->begun && box->start > r->box.end + w->out->least)
        put_run(w, r);
    if (!r->begun) {
        *r = (struct run){.box = *box, .longest = width, .begun = true};
        return;
    }
    r->box.end = box->end > r->box.end ? box->end : r->box.end;
    r->box.count = (r->box.count ? r->box.count : 1) + (box->count ? box->count : 1);
    if (width > r->longest) {
        r->longest = width;
        r->box.frame = box->frame;
    }
}

static void show_span(struct showing *w, const struct profile_span *s)
{
    uint64_t start = w->profile->start, end = s->end ? s->end : w->profile->end;
    struct spans_box box = {.start = s->time > start ? s->time - start : 0,
                            .end = end > start ? end - start : 0,
                            .thread = s->thread,
                            .depth = s->depth,
                            .frame = s->frame,
                            .count = !s->mark};
    if (box.end < box.start)
        box.end = box.start;
    if (box.end < w->window->from || box.start > w->window->to || s->depth >= w->window->depth_max)
        return;
    if (box.end - box.start < w->out->least || (s->mark && w->out->least)) {
        put_narrow(w, &box);
        return;
    }
    put_run(w, run_at(w, s->depth));
    *vector_push(&w->out->all) = box;
}

/* False when there are more boxes than may be. */
static bool show_track(struct showing *w, const struct spans_track *t)
{
    const struct profile *p = w->profile;
    uint64_t from = p->start + w->window->from, to = p->start + w->window->to;
    for (size_t k = 0; k < t->blocks.len; k++) {
        size_t first = k * BLOCK, end = first + BLOCK < t->list.len ? first + BLOCK : t->list.len;
        if (p->spans.data[t->list.data[first]].time > to)
            break;
        if (!t->blocks.data[k].open && t->blocks.data[k].last < from)
            continue;
        for (size_t i = first; i < end; i++)
            show_span(w, &p->spans.data[t->list.data[i]]);
        if (w->out->all.len > w->window->limit)
            return false;
    }
    for (size_t i = 0; i < w->runs.len; i++)
        put_run(w, &w->runs.data[i]);
    w->runs.len = 0;
    return w->out->all.len <= w->window->limit;
}

static bool show_all(struct showing *w, const struct spans *s)
{
    w->out->all.len = 0;
    w->runs.len = 0;
    for (size_t i = 0; i < s->tracks.len; i++)
        if ((!w->window->chosen || w->window->chosen[i]) && !show_track(w, &s->tracks.data[i]))
            return false;
    return true;
}

void spans_show(const struct spans *s, const struct spans_window *window, struct spans_boxes *out)
{
    struct showing w = {.profile = s->profile, .window = window, .out = out};
    *out = (struct spans_boxes){.least = window->least};
    /* Beyond that width nothing gets fewer; a forged file may have more threads than boxes. */
    while (!show_all(&w, s) && out->least <= window->to - window->from)
        out->least = out->least ? out->least * 2 : LEAST_FIRST;
    vector_release(&w.runs);
}
