/*
 * From the stack of a call to the cell that counts it. A thread remembers the cells of its own
 * stacks by hash; a stack that is new to it is looked for among those of all threads, which are
 * never changed once they stand in a bucket, so nobody locks anything.
 */
#include "agent/heap.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "agent/arch.h"
#include "agent/heap_own.h"
#include "agent/python_heap.h"

#define LOST_STACK 0
#define FRAME_UNIT 4 /* words */

static int read_elsewhere(void *context, uint64_t address, uint64_t *word)
{
    struct heap_thread *t = context;
    if (address - t->window_at >= t->window_size || t->window_size - (address - t->window_at) < 8) {
        struct iovec local = {.iov_base = t->window, .iov_len = sizeof t->window};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = sizeof t->window};
        long got = agent_quiet
                       ? -1
                       : raw6(SYS_process_vm_readv, agent_process->pid, &local, 1, &remote, 1, 0);
        t->window_at = address;
        t->window_size = got > 0 ? (uint64_t)got : 0;
        if (t->window_size < 8)
            return -1;
    }
    memcpy(word, t->window + (address - t->window_at), 8);
    return 0;
}

/* Any stack, with all registers: from here, then without the agent's own frames. */
static __attribute__((noinline)) size_t walk_slowly(struct heap_thread *t, uint64_t caller,
                                                    struct unwind_end *end)
{
    struct unwind_regs regs;
    unwind_regs_here(&regs);
    uint64_t sp = regs.value[UNWIND_SP];
    struct unwind_memory memory = {.start = sp, .read = read_elsewhere, .ctx = t};
    if (sp >= t->stack_low && sp < t->stack_end) {
        memory.data = (const void *)(uintptr_t)sp;
        memory.size = t->stack_end - sp;
    }
    t->window_size = 0;
    size_t count = unwind_walk(&agent_map, &regs, &memory, t->address, HEAP_DEPTH, end);
    for (size_t i = 0; i < count && i < 8; i++) {
        if (t->address[i] != caller)
            continue;
        memmove(t->address, t->address + i, (count - i) * sizeof *t->address);
        end->interrupted -= end->interrupted ? i : 0;
        return count - i;
    }
    t->address[0] = caller;
    *end = (struct unwind_end){.reason = UNWIND_NO_ROWS};
    return 1;
}

static bool same(const struct heap_stack *s, const uint64_t *frames, const struct heap_thread *t,
                 size_t count, size_t python)
{
    return s->count == count && s->python == python &&
           memcmp(frames + (uint64_t)s->first * FRAME_UNIT, t->address, (count + 2 * python) * 8) ==
               0;
}

/* The number of the stack in t->address, made if it is new; LOST_STACK when there is no room. */
static uint32_t stack_of(struct heap_thread *t, uint64_t hash, size_t count,
                         const struct unwind_end *end)
{
    struct heap_header *h = heap_process->segment;
    const struct heap_layout *l = &heap_process->layout;
    struct heap_stack *stacks = heap_area(l->stacks);
    uint64_t *frames = heap_area(l->frames);
    uint32_t *bucket = (uint32_t *)heap_area(l->buckets) + hash % HEAP_BUCKETS;
    uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    bool whole = false;
    size_t python = t->salt ? python_heap_tell(t, t->address + count, &whole) : 0;
    for (uint32_t i = head; i; i = stacks[i].next)
        if (stacks[i].hash == hash && same(&stacks[i], frames, t, count, python))
            return i;
    uint64_t words = (count + 2 * python + FRAME_UNIT - 1) / FRAME_UNIT * FRAME_UNIT;
    uint64_t first;
    if (!heap_reserve(&h->frames_used, words, l->frame_words, &first))
        return LOST_STACK;
    uint32_t id = __atomic_fetch_add(&h->stacks_used, 1, __ATOMIC_RELAXED);
    if (id >= l->stack_count) {
        __atomic_fetch_sub(&h->stacks_used, 1, __ATOMIC_RELAXED);
        return LOST_STACK;
    }
    memcpy(frames + first, t->address, (count + 2 * python) * 8);
    struct heap_stack *s = &stacks[id];
    s->hash = hash;
    s->first = (uint32_t)(first / FRAME_UNIT);
    s->reason = (uint8_t)end->reason;
    s->python = (uint16_t)python;
    s->python_whole = whole;
    s->interrupted = (uint16_t)end->interrupted;
    __atomic_store_n(&s->count, (uint16_t)count, __ATOMIC_RELEASE);
    do
        s->next = head;
    while (
        !__atomic_compare_exchange_n(bucket, &head, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return id;
}

/* A cell for the stack; when there are no more, cell 1, which everybody shares, or 0 for what is
 * not a block. */
static uint32_t cell_new(struct heap_thread *t, uint32_t stack, uint32_t origin,
                         enum heap_kind kind)
{
    struct heap_header *h = heap_process->segment;
    uint32_t id = __atomic_fetch_add(&h->cells_used, 1, __ATOMIC_RELAXED);
    if (id >= heap_process->layout.cell_count) {
        __atomic_fetch_sub(&h->cells_used, 1, __ATOMIC_RELAXED);
        return kind == HEAP_BLOCKS ? 1 : 0;
    }
    struct heap_cell *c = &t->cells[id];
    c->stack = stack;
    c->origin = origin;
    c->kind = kind;
    c->level = t->level;
    __atomic_store_n(&c->thread, t->index, __ATOMIC_RELEASE);
    return id;
}

static inline uint32_t slot_of(const struct heap_thread *t, uint64_t hash)
{
    return (uint32_t)(hash >> 20) & t->known_mask;
}

static void known_put(struct heap_thread *t, uint64_t hash, uint32_t cell)
{
    uint32_t i = slot_of(t, hash);
    while (t->known[i].cell)
        i = (i + 1) & t->known_mask;
    t->known[i] = (struct heap_known){.hash = hash, .cell = cell};
    t->known_used++;
}

/* Twice the room. If there is none to be had, what is known is forgotten: its cells stay, new
 * ones will be made beside them. */
static void known_grow(struct heap_thread *t)
{
    struct heap_known *old = t->known;
    uint32_t count = t->known_mask + 1;
    size_t size = 2 * (size_t)count * sizeof *old;
    long at = agent_quiet ? -1
                          : raw6(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    t->known_used = 0;
    if (at < 0 && at > -4096) {
        memset(old, 0, count * sizeof *old);
        return;
    }
    t->known = (struct heap_known *)at;
    t->known_mask = 2 * count - 1;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].cell)
            known_put(t, old[i].hash, old[i].cell);
    if (old != t->first)
        raw2(SYS_munmap, old, count * sizeof *old);
}

/* Cells of other kinds than blocks are known by another hash than their stack's. */
static inline uint64_t hash_of_kind(uint64_t hash, enum heap_kind kind)
{
    return hash + kind * 0xff51afd7ed558ccdull;
}

void heap_forget(struct heap_thread *t)
{
    memset(t->known, 0, (t->known_mask + 1) * sizeof *t->known);
    memset(t->memo, 0, sizeof t->memo);
    t->known_used = 0;
    memset(t->lost_cell, 0, sizeof t->lost_cell);
}

/* The cell that is known by a hash, or 0. */
static uint32_t cell_known(const struct heap_thread *t, uint64_t hash)
{
    uint32_t i = slot_of(t, hash);
    while (t->known[i].cell && t->known[i].hash != hash)
        i = (i + 1) & t->known_mask;
    return t->known[i].cell;
}

static void cell_remember(struct heap_thread *t, uint64_t hash, uint32_t cell)
{
    if (t->known_used >= (t->known_mask + 1) / 4 * 3)
        known_grow(t);
    known_put(t, hash, cell);
}

static __attribute__((noinline)) uint32_t cell_learn(struct heap_thread *t, uint64_t hash,
                                                     size_t count, const struct unwind_end *end,
                                                     enum heap_kind kind)
{
    uint32_t stack = stack_of(t, hash, count, end);
    if (stack == LOST_STACK) {
        if (!t->lost_cell[kind])
            t->lost_cell[kind] = cell_new(t, stack, 0, kind);
        return t->lost_cell[kind];
    }
    uint32_t cell = cell_new(t, stack, 0, kind);
    if (cell)
        cell_remember(t, hash_of_kind(hash, kind), cell);
    return cell;
}

/* The cell of the stack in t->address. */
static uint32_t cell_find(struct heap_thread *t, uint64_t hash, size_t count,
                          const struct unwind_end *end, enum heap_kind kind)
{
    uint32_t cell = cell_known(t, hash_of_kind(hash, kind));
    return cell ? cell : cell_learn(t, hash, count, end, kind);
}

/* What stands on the way to a mapping tells who asked for it. */
static enum heap_kind kind_by_stack(const struct heap_thread *t, size_t count, enum heap_kind kind)
{
    bool own = kind == HEAP_MAPPED && heap_own_is_among(t->address, count);
    return own ? HEAP_FOR_ALLOCATOR : kind;
}

static uint32_t cell_walk_slowly(struct heap_thread *t, uint64_t caller, enum heap_kind kind)
{
    struct unwind_end end = {0};
    size_t count = walk_slowly(t, caller, &end);
    return cell_find(t, unwind_hash(t->address, count) ^ t->salt, count, &end,
                     kind_by_stack(t, count, kind));
}

static uint32_t cell_walk(struct heap_thread *t, const struct unwind_call *call,
                          enum heap_kind kind)
{
    struct unwind_end end = {0};
    uint64_t hash;
    size_t count = unwind_callers(&agent_map, call, t->stack_end, &t->cache, &t->guesses,
                                  t->address, HEAP_DEPTH, &hash, &end.reason);
    return count ? cell_find(t, hash ^ t->salt, count, &end, kind_by_stack(t, count, kind))
                 : cell_walk_slowly(t, call->ip, kind);
}

uint32_t heap_cell_learn(struct heap_thread *t, const struct heap_frame *caller, uint64_t memo)
{
    struct unwind_call call = heap_call(caller);
    if (call.sp < t->stack_low || call.sp >= t->stack_end)
        return cell_walk_slowly(t, call.ip, HEAP_BLOCKS);
    uint32_t cell = t->salt ? cell_known(t, memo) : 0;
    if (cell) {
        memo_put(t, &call, memo, cell);
        return cell;
    }
    cell = cell_walk(t, &call, HEAP_BLOCKS);
    memo_put(t, &call, memo, cell);
    if (t->salt && cell > 1 && cell != t->lost_cell[HEAP_BLOCKS])
        cell_remember(t, memo, cell);
    return cell;
}

uint32_t heap_cell_of_kind(struct heap_thread *t, const struct heap_frame *caller,
                           enum heap_kind kind)
{
    struct unwind_call call = heap_call(caller);
    if (python_heap_is_on())
        python_heap_walk(t, call.sp);
    if (call.sp < t->stack_low || call.sp >= t->stack_end)
        return cell_walk_slowly(t, call.ip, kind);
    return cell_walk(t, &call, kind);
}

uint32_t heap_cell_released(struct heap_thread *t, uint32_t origin)
{
    uint64_t hash = (origin + 1ull) * 0xd6e8feb86659fd93ull;
    uint32_t cell = cell_known(t, hash);
    if (cell)
        return cell;
    cell = cell_new(t, t->cells[origin].stack, origin, t->cells[origin].kind);
    if (cell <= 1)
        return 0;
    cell_remember(t, hash, cell);
    return cell;
}
