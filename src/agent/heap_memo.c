/*
 * Learns which calls lead to which cells; see heap_memo.h.
 *
 * Calls from one place may come by paths of other shapes: where that happens too often, the shape
 * is left alone for a while.
 */
#include "agent/heap_memo.h"

#define FAILED_MAX 24
#define REST 512

_Static_assert(UNWIND_TRACE_WORDS % 4 == 0, "words are read four at a time");

static bool is_same(const struct unwind_trace *a, const struct unwind_trace *b)
{
    return a->count == b->count && a->uses_fp == b->uses_fp &&
           memcmp(a->word, b->word, a->count * sizeof *a->word) == 0;
}

/* A handler may leave by a jump between any two of these and never come back. */
static void entry_set(struct heap_known *m, uint64_t hash, uint32_t cell)
{
    __atomic_store_n(&m->cell, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&m->hash, hash, __ATOMIC_RELEASE);
    __atomic_store_n(&m->cell, cell, __ATOMIC_RELEASE);
}

static void learn(struct heap_thread *t, uint64_t hash, uint32_t cell)
{
    struct heap_known *m = memo_at(t, hash, 0);
    entry_set(memo_at(t, hash, 1), m->hash, m->cell);
    entry_set(m, hash, cell);
}

/* The thread is part of it: another one had its place before. */
static uint64_t seed_of(const struct heap_thread *t, const struct heap_shape *s)
{
    return ((uint64_t)t->index << 32 | s->version) +
           (s->trace.uses_fp ? s->fp * 0xd6e8feb86659fd93ull : 0);
}

static void shape_set(const struct heap_thread *t, struct heap_shape *s,
                      const struct unwind_call *call, const struct unwind_trace *trace,
                      uint16_t failed)
{
    bool tired = !trace || failed > FAILED_MAX;
    __atomic_store_n(&s->sp, 0, __ATOMIC_SEQ_CST);
    s->ip = call->ip;
    s->fp = call->fp;
    s->version = memo_version();
    s->failed = tired ? 0 : failed;
    s->rest = tired ? REST : 0;
    if (!tired) {
        s->trace = *trace;
        s->rounds = (trace->count + 3) / 4;
        for (uint16_t i = trace->count; i % 4; i++)
            s->trace.word[i] = s->trace.word[0];
        s->seed = seed_of(t, s);
    }
    __atomic_store_n(&s->sp, call->sp, __ATOMIC_SEQ_CST);
}

void memo_put(struct heap_thread *t, const struct unwind_call *call, uint64_t hash, uint32_t cell)
{
    if (t->salt) {
        learn(t, hash, cell);
        return;
    }
    struct heap_shape *s = memo_shape(t, call);
    bool here = s->sp == call->sp && s->ip == call->ip;
    if (here && s->rest) {
        s->rest--;
        return;
    }
    struct unwind_trace trace;
    bool plain = unwind_trace(&agent_map, call, t->stack_end, &t->cache, &trace);
    if (!plain || !memo_fits(s, call) || !hash || !is_same(&trace, &s->trace)) {
        shape_set(t, s, call, plain ? &trace : NULL, here ? s->failed + 1 : 0);
        hash = s->rest ? 0 : memo_hash(s, call);
    }
    if (hash)
        learn(t, hash, cell);
}
