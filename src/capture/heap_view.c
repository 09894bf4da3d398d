/* Reading a heap segment; see heap_view.h. */
#include "capture/heap_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "unwind/walk.h"

struct heap_view {
    const uint8_t *base;
    struct heap_layout layout;
    enum heap_mode mode;
    uint64_t interval;
    bool damaged;
};

void heap_view_leave(struct heap_view *v)
{
    struct heap_header *h = (struct heap_header *)(uintptr_t)v->base;
    __atomic_fetch_or(&h->paused, HEAP_LEAVING, __ATOMIC_RELAXED);
}

void heap_view_pause(struct heap_view *v, bool pause)
{
    struct heap_header *h = (struct heap_header *)(uintptr_t)v->base;
    if (pause)
        __atomic_fetch_or(&h->paused, HEAP_PAUSED, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&h->paused, ~(uint32_t)HEAP_PAUSED, __ATOMIC_RELAXED);
}

void heap_view_set_level(struct heap_view *v, uint32_t level)
{
    struct heap_header *h = (struct heap_header *)(uintptr_t)v->base;
    __atomic_store_n(&h->level, level, __ATOMIC_RELAXED);
}

int heap_view_new(const void *base, size_t size, struct heap_view **out, struct error *err)
{
    struct heap_header h;
    struct heap_layout layout;
    if (size < sizeof h)
        return error_set(err, FAULT_INPUT, "An agent's heap segment has only %zu bytes", size);
    memcpy(&h, base, sizeof h);
    if (h.magic != HEAP_MAGIC || h.version != HEAP_VERSION || h.header_size != sizeof h)
        return error_set(err, FAULT_INPUT,
                         "A process has an agent of another version; use the libsonde.so that "
                         "came with this sonde");
    if (!heap_layout(h.memory, &layout) || layout.size != h.size || layout.size > size ||
        (h.mode != HEAP_EXACT && h.mode != HEAP_SAMPLED))
        return error_set(err, FAULT_INPUT, "An agent's heap segment contradicts itself");
    struct heap_view *v = memory_alloc(sizeof *v);
    v->base = base;
    v->layout = layout;
    v->mode = h.mode;
    v->interval = h.interval;
    *out = v;
    return 0;
}

void heap_view_free(struct heap_view *v)
{
    free(v);
}

static const struct heap_header *header(const struct heap_view *v)
{
    return (const struct heap_header *)v->base;
}

static uint64_t load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* A mark of the header, held to its bound. */
static uint32_t used(struct heap_view *v, const uint32_t *mark, uint32_t most)
{
    uint32_t n = __atomic_load_n(mark, __ATOMIC_ACQUIRE);
    if (n <= most)
        return n;
    v->damaged = true;
    return most;
}

static uint32_t cells_used(struct heap_view *v)
{
    return used(v, &header(v)->cells_used, v->layout.cell_count);
}

uint32_t heap_view_threads(struct heap_view *v)
{
    return used(v, &header(v)->threads_used, HEAP_THREADS);
}

int64_t heap_view_told(const struct heap_view *v)
{
    return __atomic_load_n(&header(v)->told, __ATOMIC_RELAXED);
}

bool heap_view_in_peak(const struct heap_view *v, uint64_t peak)
{
    const struct heap_header *h = header(v);
    return !__atomic_load_n(&h->left, __ATOMIC_ACQUIRE) || heap_tree_has(peak, h->left_number);
}

bool heap_view_thread(struct heap_view *v, uint32_t index, struct heap_who *out)
{
    struct heap_slot s;
    if (index == 0 || index >= heap_view_threads(v))
        return false;
    const struct heap_slot *slots = (const struct heap_slot *)(v->base + v->layout.threads);
    uint32_t state = __atomic_load_n(&slots[index].state, __ATOMIC_ACQUIRE);
    memcpy(&s, &slots[index], sizeof s);
    if (state == 0 || s.tid == 0 || s.tid > INT32_MAX)
        return false;
    *out =
        (struct heap_who){.tid = (pid_t)s.tid, .start = s.start, .end = s.end, .ended = state == 2};
    memcpy(out->name, s.name, sizeof s.name);
    return true;
}

/* a - b, 0 if a process was caught between two steps or lies. */
static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t scaled(const struct heap_view *v, uint64_t count)
{
    return v->mode == HEAP_SAMPLED ? (count + HEAP_SCALE / 2) / HEAP_SCALE : count;
}

static bool sums_read(struct heap_view *v, uint32_t index, uint32_t tree_epoch,
                      struct heap_sums *out)
{
    struct heap_cell c;
    const struct heap_cell *cells = (const struct heap_cell *)(v->base + v->layout.cells);
    memcpy(&c, &cells[index], sizeof c);
    if (!c.allocations)
        return false;
    if (c.kind >= HEAP_KINDS) {
        v->damaged = true;
        return false;
    }
    uint64_t live = less(c.bytes, c.freed + c.foreign_freed);
    uint32_t epoch = __atomic_load_n(&header(v)->epoch, __ATOMIC_RELAXED);
    *out =
        (struct heap_sums){.cell = index,
                           .thread = c.thread < HEAP_THREADS ? c.thread : 0,
                           .stack = c.stack,
                           .kind = c.kind,
                           .level = c.level < HEAP_LEVEL_MAX ? c.level : HEAP_LEVEL_MAX,
                           .allocations = scaled(v, c.allocations),
                           .bytes = c.bytes,
                           .live_blocks = scaled(v, less(c.allocations, c.frees + c.foreign_frees)),
                           .live = live,
                           .peak = c.epoch == epoch ? c.held : live,
                           .tree_peak = c.tree_epoch == tree_epoch ? c.tree_held : live,
                           .temporary = scaled(v, c.temporary),
                           .temporary_bytes = c.temporary_bytes,
                           .foreign_frees = scaled(v, c.foreign_frees),
                           .foreign_freed = c.foreign_freed};
    memcpy(out->sizes, c.sizes, sizeof out->sizes);
    return true;
}

void heap_view_each(struct heap_view *v, uint32_t tree_epoch,
                    void (*each)(void *context, const struct heap_sums *sums), void *context)
{
    uint32_t count = cells_used(v);
    for (uint32_t i = 1; i < count; i++) {
        struct heap_sums sums;
        if (sums_read(v, i, tree_epoch, &sums) && sums.kind == HEAP_BLOCKS)
            each(context, &sums);
    }
}

void heap_view_each_mapped(struct heap_view *v,
                           void (*each)(void *context, const struct heap_sums *sums), void *context)
{
    uint32_t count = cells_used(v);
    for (uint32_t i = 1; i < count; i++) {
        struct heap_sums sums;
        if (sums_read(v, i, 0, &sums) && sums.kind != HEAP_BLOCKS)
            each(context, &sums);
    }
}

void heap_view_each_released(struct heap_view *v,
                             void (*each)(void *context, const struct heap_released *released),
                             void *context)
{
    const struct heap_cell *cells = (const struct heap_cell *)(v->base + v->layout.cells);
    uint32_t count = cells_used(v);
    for (uint32_t i = 2; i < count; i++) {
        uint32_t origin = __atomic_load_n(&cells[i].origin, __ATOMIC_RELAXED);
        uint64_t frees = load(&cells[i].frees);
        if (!origin || !frees || cells[i].kind != HEAP_BLOCKS)
            continue;
        if (origin >= count) {
            v->damaged = true;
            continue;
        }
        uint32_t by = cells[i].thread, thread = cells[origin].thread;
        each(context, &(struct heap_released){.by = by < HEAP_THREADS ? by : 0,
                                              .thread = thread < HEAP_THREADS ? thread : 0,
                                              .stack = cells[origin].stack,
                                              .frees = scaled(v, frees),
                                              .freed = load(&cells[i].freed)});
    }
}

/* A copy of a stack's entry; false when there is none. */
static bool stack_read(struct heap_view *v, uint32_t stack, struct heap_stack *out)
{
    if (stack == 0 || stack >= used(v, &header(v)->stacks_used, v->layout.stack_count))
        return false;
    const struct heap_stack *stacks = (const struct heap_stack *)(v->base + v->layout.stacks);
    uint16_t count = __atomic_load_n(&stacks[stack].count, __ATOMIC_ACQUIRE);
    memcpy(out, &stacks[stack], sizeof *out);
    out->count = count;
    return true;
}

size_t heap_view_stack(struct heap_view *v, uint32_t stack, uint64_t address[HEAP_DEPTH],
                       size_t *interrupted, bool *complete)
{
    struct heap_stack s;
    *interrupted = 0;
    *complete = false;
    if (!stack_read(v, stack, &s))
        return 0;
    uint16_t count = s.count;
    uint64_t first = (uint64_t)s.first * 4;
    if (count == 0 || count > HEAP_DEPTH || first + count > v->layout.frame_words) {
        v->damaged = true;
        return 0;
    }
    memcpy(address, v->base + v->layout.frames + first * 8, count * sizeof *address);
    *interrupted = s.interrupted < count ? s.interrupted : 0;
    *complete = s.reason == UNWIND_COMPLETE;
    return count;
}

size_t heap_view_python(struct heap_view *v, uint32_t stack, uint64_t words[2 * HEAP_PYTHON_DEPTH],
                        bool *whole)
{
    struct heap_stack s;
    *whole = false;
    if (!stack_read(v, stack, &s))
        return 0;
    uint64_t first = (uint64_t)s.first * 4 + s.count;
    if (s.python > HEAP_PYTHON_DEPTH || first + 2u * s.python > v->layout.frame_words) {
        v->damaged = true;
        return 0;
    }
    memcpy(words, v->base + v->layout.frames + first * 8, 2u * s.python * sizeof *words);
    *whole = s.python_whole;
    return s.python;
}

uint64_t heap_view_cost(struct heap_view *v)
{
    const struct heap_slot *slots = (const struct heap_slot *)(v->base + v->layout.threads);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < heap_view_threads(v); i++)
        sum += load(&slots[i].cost);
    return sum;
}

/* What a thread counted; returns how often it mapped something. */
static uint64_t generated_add(struct heap_view *v, struct heap_summary *out)
{
    const struct heap_slot *slots = (const struct heap_slot *)(v->base + v->layout.threads);
    uint64_t mappings = 0;
    for (uint32_t i = 0; i < heap_view_threads(v); i++) {
        out->generated += load(&slots[i].allocations);
        out->frees += load(&slots[i].frees);
        mappings += load(&slots[i].mappings);
    }
    return mappings;
}

static void mapped_add(void *context, const struct heap_sums *s)
{
    struct heap_summary *out = context;
    out->mapped += s->allocations;
}

/* Samples are counted by size class, since counts are estimates; the same number in exact mode. */
static void recorded_add(void *context, const struct heap_sums *s)
{
    struct heap_summary *out = context;
    if (out->mode == HEAP_EXACT)
        out->recorded += s->allocations;
    for (uint32_t i = 0; out->mode == HEAP_SAMPLED && i < HEAP_SIZES; i++)
        out->recorded += s->sizes[i];
    out->live += s->live;
    if (s->stack == 0)
        out->stackless += s->allocations;
}

void heap_view_summary(struct heap_view *v, struct heap_summary *out)
{
    const struct heap_header *h = header(v);
    *out = (struct heap_summary){.mode = v->mode,
                                 .interval = v->interval,
                                 .peak = load(&h->peak_seen),
                                 .peak_time = load(&h->peak_time),
                                 .unknown_frees = load(&h->unknown_frees),
                                 .lost_bytes = load(&h->lost_bytes),
                                 .threads = heap_view_threads(v) - 1,
                                 .cells = cells_used(v),
                                 .table_bytes = load(&h->blocks_used)};
    out->stacks = used(v, &h->stacks_used, v->layout.stack_count);
    uint64_t mappings = generated_add(v, out);
    heap_view_each(v, 0, recorded_add, out);
    heap_view_each_mapped(v, mapped_add, out);
    out->mappings_lost = load(&h->mappings_lost);
    if (mappings > out->mapped && mappings - out->mapped > out->mappings_lost)
        out->mappings_lost = mappings - out->mapped;
    uint64_t before = 0; /* calls that no thread's entry knows of */
    for (int i = 0; i < HEAP_LOSSES; i++) {
        out->lost_by[i] = load(&h->lost[i]);
        out->lost += out->lost_by[i];
    }
    before = out->lost_by[HEAP_LOST_NESTED] + out->lost_by[HEAP_LOST_EARLY];
    out->generated += before;
    if (out->generated < out->recorded + out->lost)
        out->generated = out->recorded + out->lost;
    else
        out->lost = out->generated - out->recorded;
    out->damaged = v->damaged;
}
