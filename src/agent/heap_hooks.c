/*
 * The interposed malloc family. A hook costs a program that is not observed one look at the gate;
 * results, errno and failures are the allocator's own. `free` takes the block out of our tables
 * before the allocator can give it to another thread; a failed call leaves no trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/heap_count.h"
#include "agent/heap_own.h"
#include "agent/heap_pass.h"
#include "agent/heap_real.h"
#include "agent/real.h"

/* The agent was left by longjmp or an exception: its frame is gone from the stack.
 * Only told apart on the thread's own stack, where addresses have an order. */
static bool is_abandoned(const struct agent_self *s, const struct heap_frame *caller)
{
    uint64_t here = (uint64_t)(uintptr_t)caller;
    const struct heap_thread *t = s->heap;
    return heap_has_place(s) && t->busy_sp >= t->stack_low && t->busy_sp <= here &&
           here < t->stack_end;
}

static struct pass pass_late(uint64_t bytes)
{
    struct heap_thread *t = &heap_process->shared;
    if (agent_phase() != AGENT_OFF && t->segment && heap_lock(t, &t->lock)) {
        t->held = NULL;
        return (struct pass){.thread = t, .gate = GATE_LATE};
    }
    recent_unseen();
    if (bytes != PASS_FREE)
        heap_refuse(HEAP_LOST_BUSY, bytes);
    return (struct pass){.gate = GATE_LATE};
}

/* Any gate but READY, or a child after fork. */
struct pass pass_slowly(const struct heap_frame *caller, uint64_t bytes)
{
    struct agent_self *s = &agent_self;
    struct pass pass = {.gate = s->gate};
    if (!heap_process)
        return pass;
    /* A signal handler that interrupted the allocator, or the allocator itself: it may well free
     * what we know, but what it allocates is no business of the program. Where the allocator is
     * part of the program, the two look alike, and the handler is the rarer. */
    if (pass.gate == GATE_REAL && !heap_own_active &&
        (bytes == PASS_FREE || !heap_real_is_inside(caller->ip)) && heap_has_place(s)) {
        pass.thread = s->heap;
        return pass;
    }
    if ((pass.gate == GATE_BUSY || (pass.gate == GATE_REAL && heap_own_active)) &&
        is_abandoned(s, caller)) {
        s->heap->inside = NULL;
        recent_unseen(); /* it may stand in two places */
        if (s->heap->held)
            heap_unlock(s->heap, s->heap->held);
        pass.thread = s->heap;
        pass.gate = GATE_READY;
        return pass;
    }
    if (pass.gate == GATE_BUSY || (pass.gate == GATE_REAL && bytes == PASS_FREE))
        recent_unseen();
    if (pass.gate == GATE_BUSY && bytes != PASS_FREE)
        heap_refuse(HEAP_LOST_NESTED, bytes);
    if (pass.gate == GATE_LATE)
        return pass_late(bytes);
    if (pass.gate != GATE_NEW && pass.gate != GATE_READY)
        return pass;
    gate_set(GATE_BUSY);
    int saved = errno;
    pass.gate = GATE_NEW;
    pass.thread = heap_enter(&pass.gate, bytes != PASS_FREE);
    errno = saved;
    gate_set(pass.gate);
    return pass.gate == GATE_LATE ? pass_late(bytes) : pass;
}

static void *store_or_null(size_t size, size_t align)
{
    void *block = heap_store_take(size, align);
    if (!block)
        errno = ENOMEM;
    return block;
}

#define RESOLVED() (likely(heap_real.free != NULL) || heap_real_resolve())

/* These come one after the other by jumps: the frame of each is the one above the caller's, and
 * none saves registers for what is rare. */
static __attribute__((noinline)) void *malloc_rarely(void *block, size_t size,
                                                     struct heap_thread *t)
{
    if (block)
        heap_on_alloc(t, (uint64_t)(uintptr_t)block, size, CALLER);
    gate_set(GATE_READY);
    return block;
}

static __attribute__((noinline)) void *malloc_counted(void *block, size_t size,
                                                      struct heap_thread *t)
{
    t->busy_sp = (uint64_t)(uintptr_t)CALLER;
    gate_set(GATE_BUSY);
    if (unlikely(!block || t->filter ||
                 !alloc_quickly(t, (uint64_t)(uintptr_t)block, size, CALLER)))
        return malloc_rarely(block, size, t);
    gate_set(GATE_READY);
    return block;
}

static __attribute__((noinline)) void *malloc_recorded(size_t size, struct heap_thread *t)
{
    gate_set(GATE_REAL);
    void *block = heap_real.malloc(size);
    return malloc_counted(block, size, t);
}

/* As above. */
static __attribute__((noinline)) void *malloc_slowly(size_t size)
{
    struct pass pass = pass_slowly(CALLER, size);
    if (unlikely(!pass.thread && !RESOLVED()))
        return store_or_null(size, 16);
    if (skip(pass, size))
        return heap_real.malloc(size);
    real_begin(pass);
    void *block = heap_real.malloc(size);
    return record(pass, block, size, CALLER);
}

EXPORT void *malloc(size_t size)
{
    struct heap_thread *t = pass_plainly();
    if (unlikely(!t))
        return malloc_slowly(size);
    return passed_over(t, size) ? heap_real.malloc(size) : malloc_recorded(size, t);
}

EXPORT void *calloc(size_t count, size_t each)
{
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size)))
        size = SIZE_MAX;
    if (unlikely(!RESOLVED()))
        return store_or_null(size, 16);
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.calloc(count, each);
    real_begin(pass);
    void *block = heap_real.calloc(count, each);
    return record(pass, block, size, CALLER);
}

/* A block of the store moves to the allocator. */
static void *realloc_store(void *block, size_t size)
{
    void *to = RESOLVED() ? heap_real.malloc(size) : store_or_null(size, 16);
    size_t old = heap_store_size(block);
    if (to)
        memcpy(to, block, old < size ? old : size);
    return to;
}

EXPORT void *realloc(void *block, size_t size)
{
    if (unlikely(block && heap_store_has(block)))
        return realloc_store(block, size);
    if (unlikely(!RESOLVED()))
        return store_or_null(size, 16);
    struct pass pass = pass_begin(CALLER, size);
    if (unlikely(!pass.thread))
        return heap_real.realloc(block, size);
    struct again again = realloc_begin(pass, block, size, CALLER);
    void *now = heap_real.realloc(block, size);
    return realloc_end(pass, &again, now, CALLER);
}

EXPORT void *reallocarray(void *block, size_t count, size_t each)
{
    size_t size;
    bool overflow = __builtin_mul_overflow(count, each, &size);
    if (unlikely(overflow || !RESOLVED() || !heap_real.reallocarray ||
                 (block && heap_store_has(block)))) {
        if (!overflow)
            return realloc(block, size);
        errno = ENOMEM;
        return NULL;
    }
    struct pass pass = pass_begin(CALLER, size);
    if (unlikely(!pass.thread))
        return heap_real.reallocarray(block, count, each);
    struct again again = realloc_begin(pass, block, size, CALLER);
    void *now = heap_real.reallocarray(block, count, each);
    return realloc_end(pass, &again, now, CALLER);
}

/* Apart, as above: any block and any thread. */
static __attribute__((noinline)) void free_slowly(void *block)
{
    if (unlikely(heap_store_has(block)))
        return;
    /* Until the allocator is known, all blocks are of the store. */
    forget(block, CALLER);
    if (likely(heap_real.free != NULL))
        heap_real.free(block);
}

static __attribute__((noinline)) void free_rarely(void *block, struct heap_thread *t)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct heap_block was = recent_take(t, address);
    bool ours = unlikely(!was.cell) && heap_store_has(block);
    if (likely(!ours))
        on_free(t, address, was, true);
    gate_set(GATE_READY);
    if (likely(!ours))
        heap_real.free(block);
}

/* Exact mode: most blocks are known. */
static __attribute__((noinline)) void free_recorded(void *block, struct heap_thread *t)
{
    prefetch_word(block);
    t->busy_sp = (uint64_t)(uintptr_t)CALLER;
    gate_set(GATE_BUSY);
    if (unlikely(!free_quickly(t, (uint64_t)(uintptr_t)block))) {
        free_rarely(block, t);
        return;
    }
    gate_set(GATE_READY);
    heap_real.free(block);
}

EXPORT void free(void *block)
{
    if (unlikely(!block))
        return;
    struct heap_thread *t = pass_plainly();
    if (likely(t && !t->filter))
        free_recorded(block, t);
    else if (t && !heap_may_know(t, (uint64_t)(uintptr_t)block)) /* nor is it of the store */
        heap_real.free(block);
    else
        free_slowly(block);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
    if (unlikely(!RESOLVED())) {
        void *block = heap_store_take(size, align);
        *out = block ? block : *out;
        return block ? 0 : ENOMEM;
    }
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.posix_memalign(out, align, size);
    real_begin(pass);
    int result = heap_real.posix_memalign(out, align, size);
    record(pass, result == 0 ? *out : NULL, size, CALLER);
    return result;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    if (unlikely(!RESOLVED()))
        return store_or_null(size, align);
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.aligned_alloc(align, size);
    real_begin(pass);
    void *block = heap_real.aligned_alloc(align, size);
    return record(pass, block, size, CALLER);
}

void *memalign(size_t align, size_t size); /* <malloc.h>, with the next two */
void *pvalloc(size_t size);

EXPORT void *memalign(size_t align, size_t size)
{
    if (unlikely(!RESOLVED()))
        return store_or_null(size, align);
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.memalign(align, size);
    real_begin(pass);
    void *block = heap_real.memalign(align, size);
    return record(pass, block, size, CALLER);
}

EXPORT void *valloc(size_t size)
{
    if (unlikely(!RESOLVED()))
        return store_or_null(size, 4096);
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.valloc(size);
    real_begin(pass);
    void *block = heap_real.valloc(size);
    return record(pass, block, size, CALLER);
}

EXPORT void *pvalloc(size_t size)
{
    if (unlikely(!RESOLVED()))
        return store_or_null((size + 4095) & ~4095ul, 4096);
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return heap_real.pvalloc(size);
    real_begin(pass);
    void *block = heap_real.pvalloc(size);
    return record(pass, block, size, CALLER);
}
