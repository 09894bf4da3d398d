/*
 * Registers in, return addresses out. unwind_walk works on a copy of a stack (a perf sample, a
 * stopped thread, a core); unwind_local on the calling process's own stack, fast enough for every
 * malloc. Both are signal-safe, lock-free and allocate nothing.
 */
#ifndef SONDE_UNWIND_WALK_H
#define SONDE_UNWIND_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"
#include "unwind/map.h"

enum unwind_reason {
    UNWIND_COMPLETE,    /* reached the outermost frame */
    UNWIND_DEPTH,       /* `max` addresses written, there are more */
    UNWIND_MEMORY,      /* the next frame needs memory that is not there: end.address */
    UNWIND_NO_ROWS,     /* no rows for end.address, and frame pointers do not hold */
    UNWIND_NO_PROGRESS, /* the stack pointer would not grow: damaged stack or rules */
    UNWIND_LOST,        /* a rule needs a register whose value is not known */
};

struct unwind_end {
    enum unwind_reason reason;
    uint64_t address;   /* see reason; for others the last address of code */
    size_t interrupted; /* index in out[] of the first address that a signal interrupted, which is
                           exact and not a return address; 0 if there was no signal frame */
    size_t guessed;     /* how many steps were made by frame pointers instead of rows */
};

/* Stack bytes copied from [start, start + size), and optionally a way to what lies outside: `read`
 * puts the word at addr into *word and returns 0, or returns anything else. */
struct unwind_memory {
    uint64_t start;
    const void *data;
    size_t size;
    int (*read)(void *ctx, uint64_t addr, uint64_t *word);
    void *ctx;
};

/*
 * Writes the addresses of the stack, innermost first, and returns how many: out[0] is the ip, the
 * others return addresses as found on the stack (so look up out[i] - 1, except for one that a
 * signal interrupted). At least 1 when max and the ip are there. Never reads but through `memory`,
 * never loops whatever the stack holds. *end may be NULL.
 */
size_t unwind_walk(const struct unwind_map *map, const struct unwind_regs *regs,
                   const struct unwind_memory *memory, uint64_t *out, size_t max,
                   struct unwind_end *end);

#define UNWIND_CACHE_SLOTS 512 /* a power of two */

/* From return address to what its row says, for unwind_local. One per thread, zeroed at first; a
 * signal handler that interrupts a walk must bring another one. */
struct unwind_cache {
    struct {
        uint64_t address;
        uint64_t step;
    } slot[UNWIND_CACHE_SLOTS];
    uint64_t version; /* of the map the entries were made from */
} __attribute__((aligned(64)));

/* As unwind_walk, on this process's own stack: memory is read between regs' sp and stack_hi, the
 * end of the stack, and nowhere else. */
size_t unwind_local(const struct unwind_map *map, const struct unwind_regs *regs, uint64_t stack_hi,
                    struct unwind_cache *cache, uint64_t *out, size_t max, struct unwind_end *end);

#define UNWIND_GUESSES 256 /* a power of two */

/* Which frame followed the one that began at an address last time, so that a walk need not wait
 * for the memory to learn where the next frame begins: it goes on from the guess and checks behind.
 * One per thread, zeroed at first, and never moved. */
struct unwind_guesses {
    struct unwind_guess {
        uint64_t sp;
        struct unwind_guess *next;
    } frame[UNWIND_GUESSES];
};

/* A call: the return address it left, the stack pointer after the return, the frame pointer. */
struct unwind_call {
    uint64_t ip, sp, fp;
};

/* The callers from a function's own call on: out[0] is call->ip, and all are return addresses.
 * *hash is one of all addresses. The fastest of all walks, for every malloc; it knows ordinary
 * frames only and returns 0 at any other, for unwind_local to try. Reads between call->sp and
 * stack_hi. */
size_t unwind_callers(const struct unwind_map *map, const struct unwind_call *call,
                      uint64_t stack_hi, struct unwind_cache *cache, struct unwind_guesses *guesses,
                      uint64_t *out, size_t max, uint64_t *hash, enum unwind_reason *reason);

#define UNWIND_TRACE_WORDS 108

/* What such a walk read: words above call->sp. From the same call (its fp need be the same only if
 * uses_fp), the same words at the same places lead along the same walk. */
struct unwind_trace {
    uint16_t count;
    bool uses_fp;
    uint16_t word[UNWIND_TRACE_WORDS];
};

/* False when it was no ordinary walk, or a longer one. */
bool unwind_trace(const struct unwind_map *map, const struct unwind_call *call, uint64_t stack_hi,
                  struct unwind_cache *cache, struct unwind_trace *trace);

/* The same hash over addresses that another walk found. */
uint64_t unwind_hash(const uint64_t *address, size_t count);

/* unwind_local from here: out[0] lies in the function that called this. */
#define unwind_here(map, stack_hi, cache, out, max, end)                                           \
    __extension__({                                                                                \
        struct unwind_regs here_;                                                                  \
        unwind_regs_here(&here_);                                                                  \
        unwind_local((map), &here_, (stack_hi), (cache), (out), (max), (end));                     \
    })

#endif
