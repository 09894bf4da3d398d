/* Spans out of a recording: the counterpart of append_spans.c. */
#include <string.h>

#include "recording/loader_internal.h"

/* Deeper than any program nests; a forged file must not take the memory. */
#define DEPTH_MAX ((size_t)1 << 20)

static struct open_spans *open_of(struct loader *l, uint32_t thread)
{
    if (thread >= l->open.len) {
        size_t before = l->open.len, wanted = (size_t)thread + 1;
        vector_reserve(&l->open, wanted);
        memset(l->open.data + before, 0, (wanted - before) * sizeof *l->open.data);
        l->open.len = wanted;
    }
    return &l->open.data[thread];
}

/* One deeper than the innermost that is open: spans need not end in the order they lie in. */
static uint32_t depth_of(const struct loader *l, const struct open_spans *o)
{
    uint32_t top = o->span.len ? o->span.data[o->span.len - 1] : PROFILE_NONE;
    return top != PROFILE_NONE ? l->profile->spans.data[top].depth + 1 : (uint32_t)o->span.len;
}

static uint32_t keep(struct loader *l, uint32_t thread, uint32_t frame, uint64_t time,
                     uint32_t depth)
{
    struct profile *p = l->profile;
    p->span_count++;
    if (!l->options.keep_spans || frame == PROFILE_NONE || p->spans.len >= UINT32_MAX - 1)
        return PROFILE_NONE;
    *vector_push(&p->spans) =
        (struct profile_span){.time = time, .thread = thread, .frame = frame, .depth = depth};
    return (uint32_t)p->spans.len - 1;
}

static void end(struct loader *l, uint32_t index, uint64_t time, bool seen)
{
    if (index == PROFILE_NONE)
        return;
    struct profile_span *s = &l->profile->spans.data[index];
    s->end = time > s->time ? time : s->time;
    s->cut_end = !seen;
}

static void end_all(struct loader *l, struct open_spans *o, uint64_t time)
{
    while (o->span.len)
        end(l, o->span.data[--o->span.len], time, false);
}

/* The span that is the n-th from the innermost ends. */
static void end_at(struct loader *l, struct open_spans *o, uint64_t n, uint64_t time)
{
    if (n >= o->span.len)
        return;
    size_t at = o->span.len - 1 - (size_t)n;
    end(l, o->span.data[at], time, true);
    memmove(o->span.data + at, o->span.data + at + 1, (size_t)n * sizeof *o->span.data);
    o->span.len--;
}

static bool apply(struct loader *l, struct cursor *c, uint32_t thread, enum span_step step,
                  uint64_t time)
{
    struct open_spans *o = open_of(l, thread);
    uint64_t operand = step == SPAN_END ? 0 : cursor_varint(c);
    uint32_t frame =
        step != SPAN_CUT && operand < l->frames.len ? l->frames.data[operand] : PROFILE_NONE;
    if (c->bad || o->span.len >= DEPTH_MAX)
        return false;
    switch (step) {
    case SPAN_BEGIN: {
        uint32_t at = keep(l, thread, frame, time, depth_of(l, o));
        *vector_push(&o->span) = at;
        break;
    }
    case SPAN_END:
        end_at(l, o, 0, time);
        break;
    case SPAN_MARK: {
        uint32_t at = keep(l, thread, frame, time, depth_of(l, o));
        end(l, at, time, true);
        if (at != PROFILE_NONE)
            l->profile->spans.data[at].mark = 1;
        break;
    }
    case SPAN_CUT:
        if (operand & 1)
            end_at(l, o, operand >> 1, time);
        else
            end_all(l, o, time);
    }
    return true;
}

bool loader_on_spans(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c), time = 0;
    uint32_t thread = id < l->threads.len ? l->threads.data[id] : PROFILE_NONE;
    if (c->bad || thread == PROFILE_NONE)
        return false;
    while (cursor_left(c)) {
        uint64_t head = cursor_varint(c);
        time += head >> 2;
        if (c->bad || !apply(l, c, thread, (enum span_step)(head & 3), time))
            return false;
        if (time > l->profile->end)
            l->profile->end = time;
    }
    return !c->bad;
}

/* Of the range that was asked for are those that reach into it. */
static void leave_out(struct loader *l)
{
    struct profile *p = l->profile;
    size_t kept = 0;
    if (!l->options.from && !l->options.to)
        return;
    for (size_t i = 0; i < p->spans.len; i++) {
        struct profile_span s = p->spans.data[i];
        uint64_t begin = s.time > l->start ? s.time - l->start : 0;
        uint64_t last = s.end > l->start ? s.end - l->start : 0;
        if (last >= l->options.from && (!l->options.to || begin < l->options.to))
            p->spans.data[kept++] = s;
    }
    p->spans.len = kept;
}

void loader_end_spans(struct loader *l)
{
    for (size_t i = 0; i < l->open.len; i++)
        end_all(l, &l->open.data[i], l->profile->end);
    leave_out(l);
}
