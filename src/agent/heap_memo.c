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

uint32_t memo_find(struct heap_thread *t, const struct unwind_call *call, uint64_t *hash)
{
    struct heap_shape *s = shape_at(t, call);
    *hash = 0;
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

static void learn(struct heap_thread *t, uint64_t hash, uint32_t cell)
{
    struct heap_known *m = &t->memo[slot_of(hash)];
    t->memo[slot_of(hash) ^ 1] = *m;
    *m = (struct heap_known){.hash = hash, .cell = cell};
}

void memo_put(struct heap_thread *t, const struct unwind_call *call, uint64_t hash, uint32_t cell)
{
    struct heap_shape *s = shape_at(t, call);
    bool known = is_of(s, call);
    if (s->rest && s->sp == call->sp && s->ip == call->ip) {
        s->rest--;
        return;
    }
    struct unwind_trace trace;
    bool plain = unwind_trace(&agent_map, call, t->stack_end, &t->cache, &trace);
    if (known && plain && hash && is_same(&trace, &s->trace)) {
        learn(t, hash, cell);
        return;
    }
    uint16_t failed = s->sp == call->sp && s->ip == call->ip ? s->failed + 1 : 0;
    *s = (struct heap_shape){.sp = call->sp, .ip = call->ip, .fp = call->fp, .failed = failed};
    s->version = version_now();
    if (!plain || failed > FAILED_MAX) {
        s->failed = 0;
        s->rest = REST;
        return;
    }
    s->trace = trace;
    learn(t, hash_words(t, s), cell);
}
