/* What few calls change: totals and peaks, samples, blocks of other threads; see heap_count.h. */
#include "agent/heap_count.h"

#include "agent/attach.h"

#define ASKED_MAX 32     /* threads */
#define COST_MAX 200000u /* ns: who takes longer for a sample was put aside meanwhile */
#define LN2 0.693147180559945309417

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

struct weight heap_weigh_sample(const struct heap_cell *c, uint64_t size)
{
    double bytes = size ? (double)size : 1;
    double p = 1 - exp_minus(bytes / (double)(heap_settings.interval << c->level));
    return (struct weight){.count = (uint64_t)(HEAP_SCALE / p + 0.5),
                           .bytes = (uint64_t)((double)size / p + 0.5)};
}

/* -ln of a uniform number in (0, 1], times the interval. */
uint64_t heap_draw(struct heap_thread *t)
{
    if (heap_settings.mode == HEAP_EXACT)
        return 0;
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    uint64_t u = t->random * 0x2545f4914f6cdd1dull | 1;
    int shift = __builtin_clzll(u);
    double m = (double)(u << shift) / 9223372036854775808.0; /* 1 <= m < 2 */
    double z = (m - 1) / (m + 1), z2 = z * z;
    double ln =
        2 * z * (1 + z2 * (1 / 3.0 + z2 * (1 / 5.0 + z2 * (1 / 7.0 + z2 * (1 / 9.0 + z2 / 11.0)))));
    return (uint64_t)(((shift + 1) * LN2 - ln) * (double)(heap_settings.interval << t->level));
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
    uint64_t step = sum > 0 ? (uint64_t)sum >> 9 : 0;
    int64_t by = now - told;
    if ((uint64_t)(by < 0 ? -by : by) * processes <= step)
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

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How much may be given back untold: no peak is missed by that, but the sum of the tree is to be
 * right within one percent. Every look that is not needed saves a small program a third of what it
 * pays. */
static int64_t may_fall(int64_t now, uint32_t threads)
{
    return now > 0 ? now >> (threads > 1 ? 39 - __builtin_clz(threads - 1) : 7) : 0;
}

/* How much may be taken untold. One thread tells of every new peak, so its peak is exact. Several
 * keep at most a two-thousandth to themselves where a peak is near, and more where it is not: they
 * cannot reach it together, and before a new one is believed all are asked (if they are few). */
static int64_t may_rise(const struct heap_header *h, int64_t now, uint32_t threads)
{
    int64_t left = (int64_t)__atomic_load_n(&h->peak, __ATOMIC_RELAXED) - now;
    left = left > 0 ? left : 0;
    if (now <= 0)
        return 0;
    if (threads <= 1)
        return least_of(left, now >> 7);
    /* A division takes as long as all else here: one, by which the rest is multiplied. */
    uint64_t part = (1u << 16) / threads;
    int64_t least = (int64_t)(((uint64_t)now >> 11) * part >> 16);
    int64_t most = (int64_t)(((uint64_t)now >> 5) * part >> 16);
    left = (int64_t)((uint64_t)left * part >> 17);
    if (threads > ASKED_MAX || left <= least)
        return least;
    return left < most ? left : most;
}

void heap_flush(struct heap_thread *t)
{
    struct heap_header *h = t->segment;
    int64_t now = __atomic_add_fetch(&h->total, t->live - t->told, __ATOMIC_RELAXED);
    uint32_t threads = __atomic_load_n(&h->threads_live, __ATOMIC_RELAXED);
    t->told = t->live;
    if (now > 0 && (uint64_t)now > __atomic_load_n(&h->peak, __ATOMIC_RELAXED))
        peak_raise(h, now, threads);
    int64_t up = may_rise(h, now, threads), down = may_fall(now, threads);
    t->least = t->live - (down > up ? down : up);
    t->bound = t->live + up;
    t->most = least_of(t->bound, t->high);
    tell_tree(h, now);
}

/* The thread holds more than it ever did, or more than may go untold. */
void heap_rise(struct heap_thread *t)
{
    if (t->live > t->high)
        t->high = t->live;
    t->most = least_of(t->bound, t->high);
    if (t->live > t->bound)
        heap_flush(t);
}

void heap_high_start(struct heap_thread *t)
{
    t->high = t->live;
    t->most = least_of(t->bound, t->high);
}

/* Who freed it. Threads that share a place are not told apart. */
void heap_count_released(struct heap_thread *t, const struct heap_cell *c, struct weight w)
{
    uint32_t origin = (uint32_t)(c - t->cells);
    uint32_t cell = origin > 1 && t->index ? heap_cell_released(t, origin) : 0;
    if (!cell)
        return;
    keep(&t->cells[cell].freed, w.bytes);
    keep(&t->cells[cell].frees, w.count);
}

/* A bit may be set where nothing is any more (two threads at once), never the other way round: the
 * counter is raised before and lowered after. */
void heap_filter_add(struct heap_thread *t, uint64_t address)
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
    t->left = (uint64_t)((double)t->left * (double)(1u << level) / (double)(1u << t->level));
    t->level = level;
    heap_forget(t);
}

/* Nothing is recorded just now. */
void heap_pass_over(struct heap_thread *t, uint32_t paused)
{
    t->left = heap_draw(t);
    if (paused & HEAP_LEAVING)
        attach_leave();
}

/* A block at the same address whose end nobody saw. */
void heap_count_ended(struct heap_thread *t, struct heap_block old)
{
    count_free(t, &t->cells[old.cell], old.size, false, !t->filter);
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

void heap_on_free(struct heap_thread *t, uint64_t address, struct heap_block block)
{
    on_free(t, address, block, !t->filter);
}

struct heap_block heap_take(struct heap_thread *t, uint64_t address)
{
    struct heap_block block = recent_take(t, address);
    if (block.cell)
        filter_remove(t, address);
    return block;
}

void heap_end(struct heap_thread *t, uint64_t address)
{
    if (__builtin_expect(!t->filter, 1))
        on_free(t, address, recent_take(t, address), true);
    else
        on_free(t, address, heap_take(t, address), false);
}

void heap_put_back(struct heap_thread *t, uint64_t address, struct heap_block block)
{
    struct heap_block old;
    if (!block.cell)
        return;
    if (recent_put(t, address, block, &old, true) != HEAP_LOSSES)
        heap_on_free(t, address, block);
    else
        heap_filter_add(t, address);
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
