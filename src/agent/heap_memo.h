/*
 * From a call to its cell without a walk. A walk reads certain words of the stack and nothing else
 * that could change while no code is loaded; so a call from the same place with the same stack
 * pointer, and the same values in those words, would walk the same way. It is enough to load them,
 * which needs not wait for anything, where each step of a walk waits for the one before.
 *
 * Here is what every allocation does; heap_memo.c learns.
 */
#ifndef SONDE_AGENT_HEAP_MEMO_H
#define SONDE_AGENT_HEAP_MEMO_H

#include <string.h>

#include "agent/heap.h"

INLINE uint64_t memo_word(uint64_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)address, sizeof word);
    return word;
}

INLINE struct heap_shape *memo_shape(struct heap_thread *t, const struct unwind_call *call)
{
    uint64_t place = ((call->sp >> 3) + call->ip) * 0x9e3779b97f4a7c15ull;
    return &t->shape[place >> 58 & (HEAP_SHAPES - 1)];
}

INLINE uint32_t memo_version(void)
{
    return (uint32_t)__atomic_load_n(&agent_map.version, __ATOMIC_ACQUIRE);
}

/* Whether the shape is that of the call, and is to be tried. */
INLINE bool memo_fits(const struct heap_shape *s, const struct unwind_call *call)
{
    return s->sp == call->sp && s->ip == call->ip && s->version == memo_version() &&
           (!s->trace.uses_fp || s->fp == call->fp);
}

/* Over the call, the words, and the seed. Four sums at once, since a multiplication takes as long
 * as four loads. */
INLINE uint64_t memo_hash(const struct heap_shape *s, const struct unwind_call *call)
{
    const uint64_t factor = 0x9e3779b97f4a7c15ull, sp = call->sp;
    const uint16_t *w = s->trace.word;
    uint64_t a = call->ip, b = sp, c = 0, d = s->seed;
    for (const uint16_t *end = w + 4 * s->rounds; w < end; w += 4) {
        a = (a + memo_word(sp + w[0] * 8ull)) * factor;
        b = (b + memo_word(sp + w[1] * 8ull)) * factor;
        c = (c + memo_word(sp + w[2] * 8ull)) * factor;
        d = (d + memo_word(sp + w[3] * 8ull)) * factor;
    }
    a = (a ^ (b << 32 | b >> 32)) * 0xd6e8feb86659fd93ull + (c ^ (d << 32 | d >> 32));
    return a ^ a >> 32;
}

/* Where all Python frames are at the same instructions, the same caller at the same depth has been
 * come to by the same way: nothing need be looked at. */
INLINE uint64_t memo_hash_python(const struct heap_thread *t, const struct unwind_call *call)
{
    uint64_t a = (t->salt ^ call->ip) * 0x9e3779b97f4a7c15ull;
    a = ((a ^ a >> 29) + call->sp + ((uint64_t)t->index << 48)) * 0xd6e8feb86659fd93ull;
    return (a ^ a >> 32) | 1;
}

/* The place of a hash; the one beside it is its second. */
INLINE struct heap_known *memo_at(struct heap_thread *t, uint64_t hash, size_t second)
{
    return &t->memo[(hash & (HEAP_MEMOS - 1)) ^ second];
}

/* The cell that the same call had before, or 0; *hash is for memo_put then. */
INLINE uint32_t memo_find(struct heap_thread *t, const struct unwind_call *call, uint64_t *hash)
{
    const struct heap_shape *s = memo_shape(t, call);
    *hash = 0;
    if (__builtin_expect(t->salt != 0, 0))
        *hash = memo_hash_python(t, call);
    else if (__builtin_expect(!memo_fits(s, call) || s->rest, 0))
        return 0;
    else
        *hash = memo_hash(s, call);
    const struct heap_known *m = memo_at(t, *hash, 0);
    if (__builtin_expect(m->hash == *hash, 1))
        return m->cell;
    m = memo_at(t, *hash, 1);
    return m->hash == *hash ? m->cell : 0;
}

/* The same where all is as it mostly is. A shape that fits was learned from this very stack. */
INLINE uint32_t memo_find_quickly(struct heap_thread *t, const struct unwind_call *call)
{
    const struct heap_shape *s = memo_shape(t, call);
    if (__builtin_expect(!memo_fits(s, call) || s->rest, 0))
        return 0;
    uint64_t hash = memo_hash(s, call);
    const struct heap_known *m = memo_at(t, hash, 0);
    return __builtin_expect(m->hash == hash, 1) ? m->cell : 0;
}

#endif
