/*
 * Walking this process's own stack, a few nanoseconds a frame: unwind_local of walk.h. Nearly every
 * frame is "CFA = sp or fp plus a number, perhaps fp saved below it"; such a step fits one word and
 * is remembered by return address. Anything else sends the whole walk to unwind_walk, which knows
 * all registers and all rules.
 *
 *   step: | kind 16 | how many bytes below the CFA fp is saved, 0: it is not, 16 | CFA offset 32 |
 */
#include "unwind/walk.h"

#include <string.h>

#include "unwind/expression.h"

enum step_kind {
    STEP_SP, /* 0, so that the upper half of a step is the slot alone */
    STEP_FP,
    STEP_LOAD, /* CFA = *(fp + offset), fp saved at *fp: a frame that realigned its stack */
    STEP_END,
    STEP_OTHER,
};

static uint64_t pack(enum step_kind kind, int32_t offset, uint8_t slot)
{
    return (uint64_t)kind << 48 | (uint64_t)slot << 35 | (uint32_t)offset;
}

static uint64_t pack_wide(const struct rows *rows, const struct wide *wide)
{
    const struct rule *fp = &wide->reg[UNWIND_FP], *ra = &wide->reg[UNWIND_IP];
    uint8_t reg;
    int64_t offset;
    if (wide->signal || wide->cfa.kind != RULE_EXPR || ra->kind != RULE_OFFSET ||
        ra->value != UNWIND_RA_OFFSET || fp->kind != RULE_EXPR ||
        wide->reg[UNWIND_SP].kind != RULE_SAME)
        return pack(STEP_OTHER, 0, 0);
    if (!expression_is_sum(rows->expr + fp->value, fp->size, &reg, &offset) || reg != UNWIND_FP ||
        offset)
        return pack(STEP_OTHER, 0, 0);
    if (!expression_is_load(rows->expr + wide->cfa.value, wide->cfa.size, &reg, &offset) ||
        reg != UNWIND_FP || offset != (int32_t)offset)
        return pack(STEP_OTHER, 0, 0);
    return pack(STEP_LOAD, (int32_t)offset, 0);
}

/* What the row before return address `address` says. */
static uint64_t look_up(const struct unwind_map *map, uint64_t address)
{
    struct unwind_module m;
    if (!unwind_map_find(map, address - 1, &m) || !m.rows)
        return pack(STEP_OTHER, 0, 0);
    const struct row *row = rows_find(m.rows, address - 1 - m.bias);
    if (row && row->kind == ROW_END)
        return pack(STEP_END, 0, 0);
    if (row && row->kind == ROW_WIDE)
        return pack_wide(m.rows, &m.rows->wide[row->cfa_offset]);
    if (!row || row->kind != ROW_FRAME || row->slot[0] == ROW_SLOT_LOST)
        return pack(STEP_OTHER, 0, 0);
    /* What lies between the stack pointer and the CFA needs no check at each step. */
    if (row->cfa_reg == UNWIND_SP && row->cfa_offset >= 8 && row->cfa_offset >= 8 * row->slot[0])
        return pack(STEP_SP, row->cfa_offset, row->slot[0]);
    if (row->cfa_reg == UNWIND_FP)
        return pack(STEP_FP, row->cfa_offset, row->slot[0]);
    return pack(STEP_OTHER, 0, 0);
}

static inline size_t slot_of(uint64_t address)
{
    return address & (UNWIND_CACHE_SLOTS - 1);
}

/* Each address has two places, side by side; the newer pushes the older aside. */
static __attribute__((noinline)) uint64_t miss(const struct unwind_map *map,
                                               struct unwind_cache *cache, uint64_t address)
{
    size_t i = slot_of(address);
    if (cache->slot[i ^ 1].address == address)
        return cache->slot[i ^ 1].step;
    uint64_t step = look_up(map, address);
    cache->slot[i ^ 1] = cache->slot[i];
    cache->slot[i].address = address;
    cache->slot[i].step = step;
    return step;
}

static inline uint64_t find(const struct unwind_map *map, struct unwind_cache *cache,
                            uint64_t address)
{
    size_t i = slot_of(address);
    if (__builtin_expect(cache->slot[i].address == address, 1))
        return cache->slot[i].step;
    return miss(map, cache, address);
}

static inline uint64_t word_at(uint64_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)address, sizeof(word));
    return word;
}

/* The walk by remembered steps. Returns the count, or 0 if a frame needs more than that. */
static size_t walk_fast(const struct unwind_map *map, const struct unwind_regs *regs, uint64_t high,
                        struct unwind_cache *cache, uint64_t *out, size_t max,
                        enum unwind_reason *reason)
{
    const uint64_t low = regs->value[UNWIND_SP];
    uint64_t sp = low, fp = regs->value[UNWIND_FP], ip = regs->value[UNWIND_IP];
    if (ip == UINT64_MAX)
        return 0; /* the address after it is 0, which marks an empty slot */
    /* The first address is exact, so its row is the one before the address after it. */
    uint64_t step = find(map, cache, ip + 1);
    size_t count = 0;
    for (;;) {
        if (count == max) {
            *reason = UNWIND_DEPTH;
            return count;
        }
        out[count++] = ip;
        uint32_t kind = (uint32_t)(step >> 48), slot = (uint32_t)(step >> 32) & 0xffff;
        uint64_t offset = (uint64_t)(int32_t)step;
        uint64_t cfa = (kind == STEP_SP ? sp : fp) + offset;
        uint64_t saved;
        if (__builtin_expect(kind <= STEP_FP, 1)) {
            saved = cfa - (slot ? slot : 8);
        } else if (kind == STEP_LOAD) {
            if (cfa < low || cfa > high - 8 || fp < low || fp > high - 8)
                return 0;
            cfa = word_at(cfa);
            saved = fp;
            slot = 1;
        } else {
            *reason = UNWIND_COMPLETE;
            return kind == STEP_END ? count : 0;
        }
        if (cfa <= sp || cfa > high || saved < low || saved > cfa - 8)
            return 0;
        uint64_t value = word_at(saved);
        fp = slot ? value : fp;
        ip = word_at(cfa - 8);
        sp = cfa;
        if (!ip) {
            *reason = UNWIND_COMPLETE;
            return count;
        }
        step = find(map, cache, ip);
    }
}

static void renew(const struct unwind_map *map, struct unwind_cache *cache)
{
    uint64_t version = __atomic_load_n(&map->version, __ATOMIC_ACQUIRE);
    if (__builtin_expect(cache->version != version, 0)) {
        memset(cache->slot, 0, sizeof(cache->slot));
        cache->version = version;
    }
}

#define HASH_FACTOR 0x9e3779b97f4a7c15ull

static inline uint64_t hash_step(uint64_t hash, uint64_t address)
{
    return (hash + address) * HASH_FACTOR;
}

/* The low bits of the sums depend on the low bits of the addresses alone. */
static inline uint64_t hash_end(uint64_t hash, size_t count)
{
    hash ^= hash >> 32;
    hash = (hash + count) * 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

uint64_t unwind_hash(const uint64_t *address, size_t count)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++)
        hash = hash_step(hash, address[i]);
    return hash_end(hash, count);
}

/* The guess of the frame at `sp`; what stood in its place is forgotten. */
static inline struct unwind_guess *guess_at(struct unwind_guesses *guesses, uint64_t sp)
{
    struct unwind_guess *g = &guesses->frame[sp >> 3 & (UNWIND_GUESSES - 1)];
    if (g->sp != sp) {
        g->sp = sp;
        g->next = g;
    }
    return g;
}

/* The CFA of a frame that has no plain STEP_SP, or 0. *fp_at moves to where a realigned frame saved
 * the frame pointer. */
static uint64_t cfa_otherwise(uint64_t step, uint64_t low, uint64_t sp, uint64_t high,
                              uint64_t *fp_at)
{
    uint32_t kind = (uint32_t)(step >> 48), slot = (uint32_t)(step >> 32) & 0xffff;
    uint64_t fp = word_at(*fp_at), cfa = fp + (uint64_t)(int32_t)step;
    if (kind == STEP_LOAD) {
        if (cfa < low || cfa > high - 8 || fp < low || fp > high - 8)
            return 0;
        cfa = word_at(cfa);
        *fp_at = fp;
    } else if (kind != STEP_FP || cfa - slot < low) {
        return 0;
    }
    return cfa > sp && cfa >= low + 8 && cfa <= high ? cfa : 0;
}

/* fp is not read before a frame needs it: fp_at is where it was saved last. */
size_t unwind_callers(const struct unwind_map *map, const struct unwind_call *call,
                      uint64_t stack_hi, struct unwind_cache *cache, struct unwind_guesses *guesses,
                      uint64_t *out, size_t max, uint64_t *hash, enum unwind_reason *reason)
{
    const uint64_t low = call->sp;
    uint64_t sp = low, fp_at = (uint64_t)(uintptr_t)&call->fp, ip = call->ip, sum = 0;
    uint64_t *at = out, *const end = out + max;
    struct unwind_guess *guess = guess_at(guesses, low);
    renew(map, cache);
    *reason = UNWIND_COMPLETE;
    while (ip) {
        if (__builtin_expect(at == end, 0)) {
            *reason = UNWIND_DEPTH;
            break;
        }
        *at++ = ip;
        sum = hash_step(sum, ip);
        uint64_t step = find(map, cache, ip), slot = step >> 32;
        uint64_t cfa = sp + (uint64_t)(int32_t)step;
        if (__builtin_expect(slot > 0xffff, 0)) {
            if (slot >> 16 == STEP_END)
                break;
            cfa = cfa_otherwise(step, low, sp, stack_hi, &fp_at);
            slot &= 0xffff;
            if (!cfa)
                return 0;
        } else if (cfa > stack_hi) {
            return 0;
        }
        /* A processor goes on with the guess before it knows whether it is right, so the frames'
         * loads overlap instead of waiting for one another. The empty asm hides from the compiler
         * that sp is cfa then. */
        struct unwind_guess *next = guess->next;
        uint64_t guessed = next->sp;
        sp = guessed;
        __asm__("" : "+r"(sp));
        if (__builtin_expect(guessed != cfa, 0)) {
            sp = cfa;
            next = guess->next = guess_at(guesses, cfa);
        }
        guess = next;
        fp_at = slot ? sp - slot : fp_at;
        ip = word_at(sp - 8);
    }
    *hash = hash_end(sum, (size_t)(at - out));
    return (size_t)(at - out);
}

/* Notes that the word at `address` was read. */
static bool trace_add(struct unwind_trace *trace, uint64_t low, uint64_t address)
{
    uint64_t word = (address - low) / 8;
    if (address < low || (address - low) % 8 || word > UINT16_MAX ||
        trace->count == UNWIND_TRACE_WORDS)
        return false;
    trace->word[trace->count++] = (uint16_t)word;
    return true;
}

/* The words that cfa_otherwise reads for a frame. */
static bool trace_frame(struct unwind_trace *trace, uint64_t step, uint64_t low, uint64_t high,
                        uint64_t fp_at, uint64_t fp_register)
{
    uint64_t fp = word_at(fp_at), at = fp + (uint64_t)(int32_t)step;
    if (fp_at == fp_register)
        trace->uses_fp = true;
    else if (!trace_add(trace, low, fp_at))
        return false;
    return step >> 48 != STEP_LOAD || (at <= high - 8 && trace_add(trace, low, at));
}

bool unwind_trace(const struct unwind_map *map, const struct unwind_call *call, uint64_t stack_hi,
                  struct unwind_cache *cache, struct unwind_trace *trace)
{
    const uint64_t low = call->sp, fp_register = (uint64_t)(uintptr_t)&call->fp;
    uint64_t sp = low, fp_at = fp_register, ip = call->ip;
    trace->count = 0;
    trace->uses_fp = false;
    renew(map, cache);
    while (ip) {
        uint64_t step = find(map, cache, ip), slot = step >> 32;
        uint64_t cfa = sp + (uint64_t)(int32_t)step;
        if (slot > 0xffff) {
            if (slot >> 16 == STEP_END)
                return true;
            if (!trace_frame(trace, step, low, stack_hi, fp_at, fp_register))
                return false;
            cfa = cfa_otherwise(step, low, sp, stack_hi, &fp_at);
            slot &= 0xffff;
        }
        if (!cfa || cfa > stack_hi || !trace_add(trace, low, cfa - 8))
            return false;
        sp = cfa;
        fp_at = slot ? sp - slot : fp_at;
        ip = word_at(sp - 8);
    }
    return true;
}

size_t unwind_local(const struct unwind_map *map, const struct unwind_regs *regs, uint64_t stack_hi,
                    struct unwind_cache *cache, uint64_t *out, size_t max, struct unwind_end *end)
{
    const uint32_t need = 1u << UNWIND_IP | 1u << UNWIND_SP | 1u << UNWIND_FP;
    uint64_t sp = regs->value[UNWIND_SP];
    renew(map, cache);
    uint64_t size = stack_hi > sp ? stack_hi - sp : 0;
    if (size >= 16 && (regs->known & need) == need && max) {
        enum unwind_reason reason;
        size_t count = walk_fast(map, regs, stack_hi, cache, out, max, &reason);
        if (count) {
            if (end)
                *end = (struct unwind_end){.reason = reason, .address = out[count - 1]};
            return count;
        }
    }
    const struct unwind_memory stack = {.start = sp, .data = (const void *)sp, .size = size};
    return unwind_walk(map, regs, &stack, out, max, end);
}
