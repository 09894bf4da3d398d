/*
 * From a call to its cell without a walk. A walk reads certain words of the stack and nothing else
 * that could change while no code is loaded; so a call from the same place with the same stack
 * pointer, and the same values in those words, would walk the same way. It is enough to load them,
 * which needs not wait for anything, where each step of a walk waits for the one before.
 *
 * Calls from one place may come by paths of other shapes: where that happens too often, the shape
 * is left alone for a while.
 */
#include "agent/heap.h"

#include <string.h>

#define FAILED_MAX 24
#define REST 512

static inline uint64_t word_at(uint64_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)address, sizeof word);
    return word;
}

static inline struct heap_shape *shape_at(struct heap_thread *t, const struct unwind_call *call)
{
    uint64_t place = ((call->sp >> 3) + call->ip) * 0x9e3779b97f4a7c15ull;
    return &t->shape[place >> 58 & (HEAP_SHAPES - 1)];
}

static inline uint32_t version_now(void)
{
    return (uint32_t)__atomic_load_n(&agent_map.version, __ATOMIC_ACQUIRE);
}

static inline bool is_of(const struct heap_shape *s, const struct unwind_call *call)
{
    return s->sp == call->sp && s->ip == call->ip && s->version == version_now() &&
           (!s->trace.uses_fp || s->fp == call->fp);
}

/* Over the call, the words, and the thread, whose place another one had before. Four sums at once,
 * since a multiplication takes as long as four loads. */
static inline uint64_t hash_words(const struct heap_thread *t, const struct heap_shape *s)
{
    const uint64_t factor = 0x9e3779b97f4a7c15ull, sp = s->sp;
    const uint16_t *w = s->trace.word, *end = w + s->trace.count;
    uint64_t a = s->ip, b = sp, c = s->trace.uses_fp ? s->fp : 0;
    uint64_t d = (uint64_t)t->index << 32 | s->version;
    for (; end - w >= 4; w += 4) {
        a = (a + word_at(sp + w[0] * 8ull)) * factor;
        b = (b + word_at(sp + w[1] * 8ull)) * factor;
        c = (c + word_at(sp + w[2] * 8ull)) * factor;
        d = (d + word_at(sp + w[3] * 8ull)) * factor;
    }
    for (; w < end; w++)
        a = (a + word_at(sp + w[0] * 8ull)) * factor;
    a = (a ^ a >> 29) + (b ^ b >> 32) * 0xd6e8feb86659fd93ull;
    a = (a ^ a >> 31) + (c ^ c >> 30) * 0xff51afd7ed558ccdull;
    a = (a ^ a >> 32) + (d ^ d >> 28) * 0xc4ceb9fe1a85ec53ull;
    return a ^ a >> 32;
}

static inline size_t slot_of(uint64_t hash)
{
    return hash & (HEAP_MEMOS - 1);
}

/* Where all Python frames are at the same instructions, the same caller at the same depth has been
 * come to by the same way: nothing need be looked at. */
static inline uint64_t hash_python(const struct heap_thread *t, const struct unwind_call *call)
{
    uint64_t a = (t->salt ^ call->ip) * 0x9e3779b97f4a7c15ull;
    a = ((a ^ a >> 29) + call->sp + ((uint64_t)t->index << 48)) * 0xd6e8feb86659fd93ull;
    return (a ^ a >> 32) | 1;
}

uint32_t memo_find(struct heap_thread *t, const struct unwind_call *call, uint64_t *hash)
{
    struct heap_shape *s = shape_at(t, call);
    *hash = 0;
    if (t->salt) {
        uint64_t h = *hash = hash_python(t, call);
        const struct heap_known *m = &t->memo[slot_of(h)];
        if (__builtin_expect(m->hash == h, 1))
            return m->cell;
        m = &t->memo[slot_of(h) ^ 1];
        return m->hash == h ? m->cell : 0;
    }
    if (__builtin_expect(!is_of(s, call), 0) || __builtin_expect(s->rest, 0))
        return 0;
    uint64_t h = *hash = hash_words(t, s);
    const struct heap_known *m = &t->memo[slot_of(h)];
    if (__builtin_expect(m->hash == h, 1))
        return m->cell;
    m = &t->memo[slot_of(h) ^ 1];
    return m->hash == h ? m->cell : 0;
}

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
    struct heap_known *m = &t->memo[slot_of(hash)];
    entry_set(&t->memo[slot_of(hash) ^ 1], m->hash, m->cell);
    entry_set(m, hash, cell);
}

static void shape_set(struct heap_shape *s, const struct unwind_call *call,
                      const struct unwind_trace *trace, uint16_t failed)
{
    bool tired = !trace || failed > FAILED_MAX;
    __atomic_store_n(&s->sp, 0, __ATOMIC_SEQ_CST);
    s->ip = call->ip;
    s->fp = call->fp;
    s->version = version_now();
    s->failed = tired ? 0 : failed;
    s->rest = tired ? REST : 0;
    if (!tired)
        s->trace = *trace;
    __atomic_store_n(&s->sp, call->sp, __ATOMIC_SEQ_CST);
}

void memo_put(struct heap_thread *t, const struct unwind_call *call, uint64_t hash, uint32_t cell)
{
    if (t->salt) {
        learn(t, hash, cell);
        return;
    }
    struct heap_shape *s = shape_at(t, call);
    bool here = s->sp == call->sp && s->ip == call->ip;
    if (here && s->rest) {
        s->rest--;
        return;
    }
    struct unwind_trace trace;
    bool plain = unwind_trace(&agent_map, call, t->stack_end, &t->cache, &trace);
    if (!plain || !is_of(s, call) || !hash || !is_same(&trace, &s->trace)) {
        shape_set(s, call, plain ? &trace : NULL, here ? s->failed + 1 : 0);
        hash = s->rest ? 0 : hash_words(t, s);
    }
    if (hash)
        learn(t, hash, cell);
}
