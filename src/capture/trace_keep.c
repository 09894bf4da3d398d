/* See trace_keep.h. */
#include "capture/trace_keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/trace.h"

static void piece_free(struct trace_piece *p)
{
    free(p->open);
    free(p);
}

static size_t weight(const struct trace_piece *p)
{
    return TRACE_PIECE + 2 * p->open_count;
}

static void drop_oldest(struct trace_keep *k)
{
    struct trace_piece *p = k->pieces.data[k->first++];
    for (size_t i = 0; i < p->len; i++)
        k->dropped += trace_kind(p->word[i]) == TRACE_ENTER;
    k->held -= weight(p);
    if (p->pen)
        p->pen->piece = NULL;
    piece_free(p);
    if (k->first < 1024 || k->first < k->pieces.len / 2)
        return;
    memmove(k->pieces.data, k->pieces.data + k->first,
            (k->pieces.len - k->first) * sizeof *k->pieces.data);
    k->pieces.len -= k->first;
    k->first = 0;
}

static struct trace_piece *piece_new(const struct trace_tree *tree, uint32_t thread, uint64_t time)
{
    struct trace_piece *p = memory_alloc(sizeof *p);
    p->thread = thread;
    p->begin = time;
    p->open_count = tree->open.len;
    p->open = memory_array(tree->open.len + 1, sizeof *p->open);
    for (size_t i = 0; i < tree->open.len; i++) {
        p->open[i].id = tree->open.data[i].id;
        p->open[i].begin = tree->open.data[i].begin;
    }
    return p;
}

/* A piece counts from its beginning, also while it is filled: threads are many and pieces large. */
static void piece_begin(struct trace_keep *k, struct trace_pen *pen, const struct trace_tree *tree,
                        uint32_t thread, uint64_t time)
{
    pen->piece = piece_new(tree, thread, time);
    pen->piece->pen = pen;
    pen->last = time;
    k->held += weight(pen->piece);
    *vector_push(&k->pieces) = pen->piece;
    /* What is left must be as much as was asked for, without the piece that is still empty. */
    while (k->max && k->pieces.len - k->first > 1 &&
           k->held - weight(k->pieces.data[k->first]) - weight(pen->piece) >= k->max)
        drop_oldest(k);
}

static void put(struct trace_pen *pen, uint64_t word)
{
    pen->piece->word[pen->piece->len++] = word;
}

void trace_keep_step_rare(struct trace_keep *k, struct trace_pen *pen,
                          const struct trace_tree *tree, uint32_t thread, enum trace_word kind,
                          uint32_t id, uint64_t time)
{
    if (pen->piece && pen->piece->len == TRACE_PIECE) {
        pen->piece->pen = NULL;
        pen->piece = NULL;
    }
    if (!pen->piece)
        piece_begin(k, pen, tree, thread, time);
    uint64_t later = time > pen->last ? time - pen->last : 0;
    if (later > TRACE_DELTA_MAX) {
        uint64_t most = TRACE_DELTA_MAX;
        for (; later > most && pen->piece->len + 1 < TRACE_PIECE; later -= most)
            put(pen, trace_pack(TRACE_GAP, 0, most));
        later = later > most ? most : later;
    }
    put(pen, trace_pack(kind, id, later));
    pen->last = time;
}

bool trace_keep_forget(struct trace_pen *pen, uint32_t id)
{
    struct trace_piece *p = pen->piece;
    if (!p || !p->len || trace_kind(p->word[p->len - 1]) != TRACE_ENTER ||
        trace_id(p->word[p->len - 1]) != id)
        return false;
    pen->last -= trace_ticks(p->word[--p->len]);
    return true;
}

static void write_piece(const struct trace_piece *p, struct writer *w,
                        uint32_t (*frame)(void *, uint32_t), void *context)
{
    uint64_t time = p->begin;
    for (size_t i = 0; i < p->len; i++) {
        uint64_t word = p->word[i];
        time += trace_ticks(word);
        switch (trace_kind(word)) {
        case TRACE_ENTER:
            writer_span_begin(w, p->thread, time, frame(context, trace_id(word)));
            break;
        case TRACE_LEAVE:
            writer_span_end_at(w, p->thread, time, trace_id(word));
            break;
        case TRACE_MARK:
            writer_span_mark(w, p->thread, time, frame(context, trace_id(word)));
            break;
        case TRACE_LOST:
            writer_span_cut(w, p->thread, time, trace_id(word));
            break;
        default:
            break;
        }
    }
}

/* The first piece of a thread begins with what was open before it. */
static void write_open(const struct trace_piece *p, struct writer *w,
                       uint32_t (*frame)(void *, uint32_t), void *context)
{
    for (size_t i = 0; i < p->open_count; i++)
        writer_span_begin(w, p->thread, p->open[i].begin, frame(context, p->open[i].id));
}

void trace_keep_write(struct trace_keep *k, struct writer *w,
                      uint32_t (*frame)(void *context, uint32_t id), void *context)
{
    struct map seen = {0};
    for (size_t i = k->first; i < k->pieces.len; i++) {
        const struct trace_piece *p = k->pieces.data[i];
        bool added;
        map_put(&seen, p->thread, 0, 1, &added);
        if (added && k->max)
            write_open(p, w, frame, context);
        write_piece(p, w, frame, context);
    }
    map_release(&seen);
    trace_keep_release(k);
}

void trace_keep_flush(struct trace_keep *k, struct writer *w,
                      uint32_t (*frame)(void *context, uint32_t id), void *context)
{
    size_t kept = k->first;
    for (size_t i = k->first; i < k->pieces.len; i++) {
        struct trace_piece *p = k->pieces.data[i];
        if (p->pen) {
            k->pieces.data[kept++] = p;
            continue;
        }
        write_piece(p, w, frame, context);
        k->held -= weight(p);
        piece_free(p);
    }
    k->pieces.len = kept;
}

void trace_keep_release(struct trace_keep *k)
{
    for (size_t i = k->first; i < k->pieces.len; i++)
        piece_free(k->pieces.data[i]);
    vector_release(&k->pieces);
    k->first = k->held = 0;
}
