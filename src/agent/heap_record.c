/*
 * What a call changes. The order is such that a process that dies between any two instructions
 * leaves sums that are one call behind at worst, never wrong: a call is counted as generated
 * first, as recorded in its cell last.
 *
 * What is on every call's way is put together in one piece (INLINE), once for each mode: calls of
 * functions and questions of the mode were a third of what it took.
 */
#include "agent/heap_blocks.h"

#include "agent/alone.h"
#include "agent/attach.h"
#include "agent/heap_memo.h"
#include "agent/python_heap.h"

#define ASKED_MAX 32     /* threads */
#define COST_MAX 200000u /* ns: who takes longer for a sample was put aside meanwhile */
#define LN2 0.693147180559945309417

/* In exact mode every block stands for itself; in sampled mode for as many as were likely passed
 * over: one of `size` bytes is taken with probability 1 - exp(-size / interval). */
struct weight {
    uint64_t count, bytes;
};

/* exp(-x) for x >= 0, to 12 digits: a short series, then ten squarings. */
static double exp_minus(double x)
{
    if (x > 50)
        return 0;
    double y = x / 1024;
    double e = 1 - y * (1 - y / 2 * (1 - y / 3 * (1 - y / 4 * (1 - y / 5))));
    for (int i = 0; i < 10; i++)
        e *= e;
    return e;
}

static __attribute__((noinline)) struct weight weigh_sample(const struct heap_cell *c,
                                                            uint64_t size)
{
    double bytes = size ? (double)size : 1;
    double p = 1 - exp_minus(bytes / (double)(heap_settings.interval << c->level));
    return (struct weight){.count = (uint64_t)(HEAP_SCALE / p + 0.5),
                           .bytes = (uint64_t)((double)size / p + 0.5)};
}

INLINE struct weight weigh(const struct heap_cell *c, uint64_t size, bool exact)
{
    return exact ? (struct weight){.count = 1, .bytes = size} : weigh_sample(c, size);
}

/* -ln of a uniform number in (0, 1], times the interval. */
int64_t heap_draw(struct heap_thread *t)
{
    if (heap_settings.mode == HEAP_EXACT)
        return -1;
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    uint64_t u = t->random * 0x2545f4914f6cdd1dull | 1;
    int shift = __builtin_clzll(u);
    double m = (double)(u << shift) / 9223372036854775808.0; /* 1 <= m < 2 */
    double z = (m - 1) / (m + 1), z2 = z * z;
    double ln =
        2 * z * (1 + z2 * (1 / 3.0 + z2 * (1 / 5.0 + z2 * (1 / 7.0 + z2 * (1 / 9.0 + z2 / 11.0)))));
    return (int64_t)(((shift + 1) * LN2 - ln) * (double)(heap_settings.interval << t->level));
}

/* One that nobody else changes: one instruction, and in the order that is written here. */
INLINE void keep(uint64_t *counter, uint64_t by)
{
    *counter += by;
    __atomic_signal_fence(__ATOMIC_RELEASE);
}

INLINE void add(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* Before any change of a cell: what it held at the latest peaks. */
INLINE void cell_touch(const struct heap_header *h, struct heap_cell *c)
{
    uint32_t epoch = __atomic_load_n(&h->epoch, __ATOMIC_RELAXED);
    uint32_t tree = __atomic_load_n(&heap_tree->epoch, __ATOMIC_RELAXED);
    if (c->epoch != epoch) {
        c->held = heap_live(c);
        __atomic_store_n(&c->epoch, epoch, __ATOMIC_RELEASE);
    }
    if (c->tree_epoch != tree) {
        c->tree_held = heap_live(c);
        __atomic_store_n(&c->tree_epoch, tree, __ATOMIC_RELEASE);
    }
}

/* The tree learns of changes of two thousandths; then a peak of it is right within one percent. */
static void tell_tree(struct heap_header *h, int64_t now)
{
    struct heap_tree *tree = heap_tree;
    if (h->left)
        return;
    int64_t told = __atomic_load_n(&h->told, __ATOMIC_RELAXED);
    int64_t sum = heap_tree_bytes(__atomic_load_n(&tree->total, __ATOMIC_RELAXED));
    uint32_t processes = tree->processes ? tree->processes : 1;
    int64_t step = sum > 0 ? (sum >> 9) / processes : 0, by = now - told;
    if (by <= step && by >= -step)
        return;
    if (!__atomic_compare_exchange_n(&h->told, &told, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return; /* another thread just did */
    int64_t word = __atomic_add_fetch(&tree->total, by * (1 << HEAP_TREE_SHIFT), __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&tree->peak, __ATOMIC_RELAXED);
    uint64_t most = peak + (processes > 1 ? peak >> 9 : 0);
    if (word <= 0 || (uint64_t)word >> HEAP_TREE_SHIFT <= most >> HEAP_TREE_SHIFT)
        return;
    if (__atomic_compare_exchange_n(&tree->peak, &peak, (uint64_t)word, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        tree->peak_time = processes > 1 ? agent_now() : h->peak_time;
        __atomic_fetch_add(&tree->epoch, 1, __ATOMIC_RELEASE);
    }
}

static void peak_raise(struct heap_header *h, int64_t told, uint32_t threads)
{
    int64_t sum = threads > 1 && threads <= ASKED_MAX ? told + heap_untold() : told;
    uint64_t now = sum > 0 ? (uint64_t)sum : 0;
    uint64_t seen = __atomic_load_n(&h->peak_seen, __ATOMIC_RELAXED);
    while (now > seen && !__atomic_compare_exchange_n(&h->peak_seen, &seen, now, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    uint64_t peak = __atomic_load_n(&h->peak, __ATOMIC_RELAXED);
    if (now <= peak + (threads > 1 ? peak >> 12 : 0))
        return;
    if (__atomic_compare_exchange_n(&h->peak, &peak, now, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        if (now > h->peak_timed + (h->peak_timed >> 10)) {
            h->peak_timed = now;
            h->peak_time = agent_now();
        }
        __atomic_fetch_add(&h->epoch, 1, __ATOMIC_RELEASE);
    }
}

/* How much may wait. One thread tells of every new peak, so its peak is exact. Several keep at most
 * a two-thousandth to themselves where a peak is near, and more where it is not: they cannot reach
 * it together, and before a new one is believed all are asked (if they are few). */
static int64_t may_wait(const struct heap_header *h, int64_t now, uint32_t threads)
{
    if (now <= 0)
        return 0;
    if (threads <= 1)
        return now >> 9;
    int64_t least = (now >> 11) / threads, most = (now >> 5) / threads;
    int64_t left = (int64_t)__atomic_load_n(&h->peak, __ATOMIC_RELAXED) - now;
    if (threads > ASKED_MAX || left / (2 * (int64_t)threads) <= least)
        return least;
    left /= 2 * (int64_t)threads;
    return left < most ? left : most;
}

void heap_flush(struct heap_thread *t)
{
    struct heap_header *h = t->segment;
    int64_t now = __atomic_add_fetch(&h->total, t->delta, __ATOMIC_RELAXED);
    uint32_t threads = __atomic_load_n(&h->threads_live, __ATOMIC_RELAXED);
    t->delta = 0;
    if (now > 0 && (uint64_t)now > __atomic_load_n(&h->peak, __ATOMIC_RELAXED))
        peak_raise(h, now, threads);
    int64_t most = may_wait(h, now, threads);
    t->up = t->down = most;
    int64_t left = (int64_t)__atomic_load_n(&h->peak, __ATOMIC_RELAXED) - now;
    if (threads <= 1 && left < most)
        t->up = left > 0 ? left : 0;
    tell_tree(h, now);
}

INLINE void total_add(struct heap_thread *t, int64_t by)
{
    t->delta += by;
    if (t->delta > t->up || -t->delta > t->down)
        heap_flush(t);
}

INLINE bool is_own(const struct heap_thread *t, const struct heap_cell *c)
{
    return __builtin_expect(c->thread == t->index, 1);
}

INLINE void cell_add(struct heap_thread *t, struct heap_cell *c, uint64_t size, struct weight w)
{
    cell_touch(t->segment, c);
    if (is_own(t, c)) {
        keep(&c->bytes, w.bytes);
        keep(&c->allocations, w.count);
        c->sizes[heap_bucket(size)]++;
    } else {
        add(&c->bytes, w.bytes);
        add(&c->allocations, w.count);
        __atomic_fetch_add(&c->sizes[heap_bucket(size)], 1, __ATOMIC_RELAXED);
    }
}

INLINE void count_alloc(struct heap_thread *t, struct heap_cell *c, uint64_t size, bool exact)
{
    struct weight w = weigh(c, size, exact);
    cell_add(t, c, size, w);
    t->taken += w.bytes;
    if ((int64_t)(t->taken - t->given) > t->high)
        t->high = (int64_t)(t->taken - t->given);
    total_add(t, (int64_t)w.bytes);
}

/* Who freed it. Threads that share a place are not told apart. */
static __attribute__((noinline)) void count_released(struct heap_thread *t,
                                                     const struct heap_cell *c, struct weight w)
{
    uint32_t origin = (uint32_t)(c - t->cells);
    uint32_t cell = origin > 1 && t->index ? heap_cell_released(t, origin) : 0;
    if (!cell)
        return;
    keep(&t->cells[cell].freed, w.bytes);
    keep(&t->cells[cell].frees, w.count);
}

INLINE void cell_release(struct heap_thread *t, struct heap_cell *c, struct weight w)
{
    cell_touch(t->segment, c);
    if (is_own(t, c)) {
        keep(&c->freed, w.bytes);
        keep(&c->frees, w.count);
    } else {
        add(&c->foreign_freed, w.bytes);
        add(&c->foreign_frees, w.count);
        count_released(t, c, w);
    }
}

INLINE void count_free(struct heap_thread *t, struct heap_cell *c, uint64_t size, bool temporary,
                       bool exact)
{
    struct weight w = weigh(c, size, exact);
    cell_release(t, c, w);
    if (temporary && is_own(t, c)) {
        keep(&c->temporary, w.count);
        keep(&c->temporary_bytes, w.bytes);
    }
    t->given += w.bytes;
    total_add(t, -(int64_t)w.bytes);
}

/* A bit may be set where nothing is any more (two threads at once), never the other way round: the
 * counter is raised before and lowered after. */
static void filter_add(struct heap_thread *t, uint64_t address)
{
    if (!t->filter)
        return;
    uint32_t place = heap_filter_place(address);
    __atomic_fetch_add(&heap_process->filter_count[place], 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&t->filter[place / 64], 1ull << place % 64, __ATOMIC_SEQ_CST);
}

static void filter_remove(struct heap_thread *t, uint64_t address)
{
    if (!t->filter)
        return;
    uint32_t place = heap_filter_place(address);
    uint16_t *count = &heap_process->filter_count[place];
    if (__atomic_sub_fetch(count, 1, __ATOMIC_SEQ_CST) != 0)
        return;
    __atomic_fetch_and(&t->filter[place / 64], ~(1ull << place % 64), __ATOMIC_SEQ_CST);
    if (__atomic_load_n(count, __ATOMIC_SEQ_CST))
        __atomic_fetch_or(&t->filter[place / 64], 1ull << place % 64, __ATOMIC_SEQ_CST);
}

/* The collector wants samples to be farther apart, or nearer. What is left to the next one is
 * stretched with them: of a chance without memory that is as good as drawn anew. */
static __attribute__((noinline)) void change_level(struct heap_thread *t, uint32_t level)
{
    level = level < HEAP_LEVEL_MAX ? level : HEAP_LEVEL_MAX;
    t->left = (int64_t)((double)t->left * (double)(1u << level) / (double)(1u << t->level));
    t->level = level;
    heap_forget(t);
}

/* The cell of the stack that leads to `caller`; never 0. */
INLINE uint32_t cell_of(struct heap_thread *t, const struct heap_frame *caller)
{
    struct unwind_call call = heap_call(caller);
    uint64_t memo = 0;
    uint32_t cell = 0;
    if (__builtin_expect(python_heap_is_on(), 0))
        python_heap_walk(t, call.sp);
    if (__builtin_expect(call.sp >= t->stack_low && call.sp < t->stack_end, 1))
        cell = memo_find(t, &call, &memo);
    return __builtin_expect(cell, 1) ? cell : heap_cell_learn(t, &call, memo);
}

/* Nothing is recorded just now. */
static __attribute__((noinline)) void pass_over(struct heap_thread *t, uint32_t paused)
{
    t->left = heap_draw(t);
    if (paused & HEAP_LEAVING)
        attach_leave();
}

/* A block at the same address whose end nobody saw. */
static __attribute__((noinline)) void count_ended(struct heap_thread *t, struct heap_block old)
{
    count_free(t, &t->cells[old.cell], old.size, false, !t->filter);
}

INLINE void on_alloc(struct heap_thread *t, uint64_t address, uint64_t size,
                     const struct heap_frame *caller, bool exact)
{
    struct heap_block old, block = {.size = size};
    uint32_t paused = __atomic_load_n(&t->segment->paused, __ATOMIC_RELAXED);
    if (__builtin_expect(paused, 0)) {
        pass_over(t, paused);
        return;
    }
    keep(&t->slot->allocations, 1);
    t->left = exact ? -1 : heap_draw(t);
    struct heap_region *region = blocks_region(t, address, true);
    blocks_fetch(t, region, address);
    block.cell = cell_of(t, caller);
    enum heap_loss lost = blocks_put(t, region, address, block, &old);
    if (__builtin_expect(lost != HEAP_LOSSES, 0)) {
        heap_refuse(lost, size);
        return;
    }
    if (!exact)
        filter_add(t, address);
    if (__builtin_expect(old.cell, 0))
        count_ended(t, old);
    count_alloc(t, &t->cells[block.cell], size, exact);
    t->last = address;
    if (__builtin_expect(alone_heap_on, 0))
        alone_heap_after(size);
}

/* Seldom enough for two looks at the clock. */
static __attribute__((noinline)) void on_sample(struct heap_thread *t, uint64_t address,
                                                uint64_t size, const struct heap_frame *caller)
{
    uint64_t begin = agent_now();
    on_alloc(t, address, size, caller, false);
    uint32_t level = __atomic_load_n(&t->segment->level, __ATOMIC_RELAXED);
    if (level != t->level)
        change_level(t, level);
    uint64_t taken = agent_now() - begin;
    keep(&t->slot->cost, taken < COST_MAX ? taken : COST_MAX);
}

void heap_on_alloc(struct heap_thread *t, uint64_t address, uint64_t size,
                   const struct heap_frame *caller)
{
    if (__builtin_expect(!t->filter, 1))
        on_alloc(t, address, size, caller, true);
    else
        on_sample(t, address, size, caller);
}

INLINE void on_free(struct heap_thread *t, uint64_t address, struct heap_block block, bool exact)
{
    keep(&t->slot->frees, 1);
    if (__builtin_expect(!block.cell, 0)) {
        if (exact)
            add(&t->segment->unknown_frees, 1);
        return;
    }
    bool temporary = address == t->last;
    count_free(t, &t->cells[block.cell], block.size, temporary, exact);
    if (temporary)
        t->last = 0;
}

void heap_on_free(struct heap_thread *t, uint64_t address, struct heap_block block)
{
    on_free(t, address, block, !t->filter);
}

struct heap_block heap_take(struct heap_thread *t, uint64_t address)
{
    struct heap_block block = blocks_take(t, address);
    if (block.cell)
        filter_remove(t, address);
    return block;
}

void heap_end(struct heap_thread *t, uint64_t address)
{
    if (__builtin_expect(!t->filter, 1))
        on_free(t, address, blocks_take(t, address), true);
    else
        on_free(t, address, heap_take(t, address), false);
}

void heap_put_back(struct heap_thread *t, uint64_t address, struct heap_block block)
{
    struct heap_block old;
    if (!block.cell)
        return;
    if (blocks_put(t, blocks_region(t, address, true), address, block, &old) != HEAP_LOSSES)
        heap_on_free(t, address, block);
    else
        filter_add(t, address);
}

/* Mappings are all recorded, in sampled mode too. */
static struct weight weigh_mapping(uint64_t bytes, bool whole)
{
    uint64_t one = heap_settings.mode == HEAP_SAMPLED ? HEAP_SCALE : 1;
    return (struct weight){.count = whole ? one : 0, .bytes = bytes};
}

void heap_count_mapped(struct heap_thread *t, uint32_t cell, uint64_t bytes)
{
    cell_add(t, &t->cells[cell], bytes, weigh_mapping(bytes, true));
}

void heap_count_unmapped(struct heap_thread *t, uint32_t cell, uint64_t bytes, bool whole)
{
    cell_release(t, &t->cells[cell], weigh_mapping(bytes, whole));
}
