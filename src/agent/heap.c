/*
 * The heap's segment and the threads that write to it. A forked child finds all of this wiped and
 * makes its own segment at its first allocation: what it inherited from its parent it knows
 * nothing of, and frees of that are counted apart. A child that only execs costs nothing.
 */
#include "agent/heap.h"

#include <errno.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "agent/attach.h"
#include "agent/heap_own.h"
#include "agent/heap_real.h"
#include "agent/publish.h"
#include "agent/session.h"

#define BLOCK 16 /* private halves that are mapped together */

struct heap_settings heap_settings;
uint32_t heap_pause;
struct heap_process *heap_process;
static struct heap_tree no_tree = {.epoch = 1};
struct heap_tree *heap_tree = &no_tree;

static struct heap_thread *block[AGENT_SLOTS / BLOCK];
static pthread_key_t end_key;
static bool has_key;

void heap_refuse(enum heap_loss why, uint64_t bytes)
{
    struct heap_header *h = __atomic_load_n(&heap_process->segment, __ATOMIC_ACQUIRE);
    if (!h) {
        __atomic_fetch_add(&heap_process->early, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&h->lost[why], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&h->lost_bytes, bytes, __ATOMIC_RELAXED);
}

void heap_refuse_mapping(void)
{
    struct heap_header *h = __atomic_load_n(&heap_process->segment, __ATOMIC_ACQUIRE);
    if (h)
        __atomic_fetch_add(&h->mappings_lost, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_add(&heap_process->early_mappings, 1, __ATOMIC_RELAXED);
}

static struct heap_thread *place_at(uint32_t i)
{
    struct heap_thread **at = &block[i / BLOCK];
    struct heap_thread *b = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (b)
        return &b[i % BLOCK];
    size_t size = BLOCK * sizeof *b;
    struct heap_thread *fresh = agent_quiet ? NULL : publish_map_wiped(size);
    if (!fresh)
        return NULL;
    if (__atomic_compare_exchange_n(at, &b, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return &fresh[i % BLOCK];
    raw2(SYS_munmap, fresh, size);
    return &b[i % BLOCK];
}

static struct heap_thread *place_claim(void)
{
    struct heap_process *p = heap_process;
    for (uint32_t i = 0; i < AGENT_SLOTS; i++) {
        if (__atomic_load_n(&p->claimed[i], __ATOMIC_RELAXED) ||
            __atomic_exchange_n(&p->claimed[i], 1, __ATOMIC_ACQ_REL))
            continue;
        struct heap_thread *t = place_at(i);
        if (t) {
            t->place = i;
            t->owner = i + 1;
            uint32_t places = __atomic_load_n(&p->places, __ATOMIC_RELAXED);
            while (i >= places && !__atomic_compare_exchange_n(&p->places, &places, i + 1, true,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        } else {
            __atomic_store_n(&p->claimed[i], 0, __ATOMIC_RELEASE);
        }
        return t;
    }
    return NULL;
}

struct heap_thread *heap_place(uint32_t i)
{
    struct heap_thread *b =
        i < AGENT_SLOTS ? __atomic_load_n(&block[i / BLOCK], __ATOMIC_ACQUIRE) : NULL;
    return b ? &b[i % BLOCK] : NULL;
}

int64_t heap_untold(void)
{
    struct heap_process *p = heap_process;
    uint32_t places = __atomic_load_n(&p->places, __ATOMIC_RELAXED);
    int64_t sum = 0;
    for (uint32_t i = 0; i < places; i++) {
        struct heap_thread *t = heap_place(i);
        if (t && __atomic_load_n(&p->claimed[i], __ATOMIC_RELAXED))
            sum += __atomic_load_n(&t->live, __ATOMIC_RELAXED) -
                   __atomic_load_n(&t->told, __ATOMIC_RELAXED);
    }
    return sum;
}

/* What a place starts with. */
static void place_fill(struct heap_thread *t, uint32_t index)
{
    struct heap_process *p = heap_process;
    for (size_t i = 0; t->index && i < HEAP_SHAPES; i++)
        t->shape[i].sp = 0; /* of who had the place before: its stack may be gone */
    t->index = index;
    t->slot = (struct heap_slot *)heap_area(p->layout.threads) + index;
    t->cells = heap_area(p->layout.cells);
    t->blocks = heap_area(p->layout.blocks);
    t->known = t->first;
    t->known_mask = HEAP_TABLE - 1;
    t->known_used = 0;
    memset(t->first, 0, sizeof t->first);
    memset(t->lost_cell, 0, sizeof t->lost_cell);
    memset(t->range, 0, sizeof t->range);
    t->last = 0;
    t->taken = 0;
    t->live = t->told = 0;
    t->least = t->most = t->bound = t->high = 0;
    t->rounds = 0;
    t->held = NULL;
    t->inside = NULL;
    t->busy_sp = 0;
    recent_init(t);
    t->filter = heap_settings.mode == HEAP_SAMPLED ? p->filter : NULL;
    t->random = agent_now() * 0x9e3779b97f4a7c15ull ^ (uint64_t)(uintptr_t)t ^
                (uint64_t)p->segment->pid << 40;
    t->random |= !t->random;
    uint32_t level = __atomic_load_n(&p->segment->level, __ATOMIC_RELAXED);
    t->level = level < HEAP_LEVEL_MAX ? level : HEAP_LEVEL_MAX;
    t->left = heap_draw(t);
    __atomic_store_n(&t->segment, p->segment, __ATOMIC_RELEASE);
}

static void slot_fill(struct heap_thread *t)
{
    struct heap_slot *s = t->slot;
    t->tid = agent_self.tid;
    if (!agent_quiet) {
        t->tid = (int32_t)raw0(SYS_gettid);
        raw2(SYS_prctl, PR_GET_NAME, s->name);
    }
    s->tid = (uint32_t)t->tid;
    s->start = agent_now();
    __atomic_store_n(&s->state, 1, __ATOMIC_RELEASE);
}

static struct heap_thread *thread_new(void)
{
    struct heap_process *p = heap_process;
    struct heap_header *h = p->segment;
    struct heap_thread *t = place_claim();
    if (!t)
        return NULL;
    uint32_t index = __atomic_fetch_add(&h->threads_used, 1, __ATOMIC_RELAXED);
    if (index >= HEAP_THREADS) {
        __atomic_fetch_sub(&h->threads_used, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&p->claimed[t->place], 0, __ATOMIC_RELEASE);
        return NULL;
    }
    t->stack_low = agent_self.stack_low;
    t->stack_end = agent_self.stack_end;
    if (attach_active && !t->stack_end && !agent_quiet)
        attach_stack((uint64_t)(uintptr_t)&t, &t->stack_low, &t->stack_end);
    place_fill(t, index);
    recent_claim(t);
    slot_fill(t);
    __atomic_fetch_add(&h->threads_live, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&t->self, &agent_self, __ATOMIC_RELEASE);
    if (has_key)
        pthread_setspecific(end_key, t);
    return t;
}

/* Other keys' destructors come after ours and free what they hold: stay until the last round. */
static void on_thread_end(void *value)
{
    struct heap_thread *t = value;
    if (agent_self.heap != t || !heap_has_place(&agent_self))
        return; /* forked since, or the session is over */
    if (++t->rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(end_key, t) == 0)
        return;
    /* In this order: a signal may come in between. */
    __atomic_store_n(&agent_self.gate, GATE_LATE, __ATOMIC_SEQ_CST);
    agent_self.heap = NULL;
    __atomic_store_n(&t->self, NULL, __ATOMIC_RELAXED);
    heap_flush(t);
    recent_give(t);
    t->slot->end = agent_now();
    if (!agent_quiet)
        raw2(SYS_prctl, PR_GET_NAME, t->slot->name);
    __atomic_store_n(&t->slot->state, 2, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&t->segment->threads_live, 1, __ATOMIC_RELAXED);
    if (t->known != t->first && !agent_quiet)
        raw2(SYS_munmap, t->known, (t->known_mask + 1) * sizeof *t->known);
    t->segment = NULL;
    __atomic_store_n(&heap_process->claimed[t->place], 0, __ATOMIC_RELEASE);
}

struct shape {
    struct heap_layout layout;
    uint64_t memory;
};

static void header_fill(void *at, const void *context)
{
    const struct shape *shape = context;
    const struct heap_layout *l = &shape->layout;
    struct heap_header *h = at;
    h->header_size = sizeof *h;
    h->size = l->size;
    h->mode = heap_settings.mode;
    h->pid = (uint32_t)raw0(SYS_getpid);
    h->interval = heap_settings.interval;
    h->memory = shape->memory;
    h->threads_used = 1; /* entry 0 of each kind is special */
    h->stacks_used = 1;
    h->cells_used = 2;
    h->start = agent_now();
    h->epoch = 1;
    h->paused = heap_pause;
    h->version = HEAP_VERSION;
    struct heap_cell *cells = (struct heap_cell *)((char *)h + l->cells);
    cells[1].thread = UINT32_MAX;
    __atomic_store_n(&h->magic, HEAP_MAGIC, __ATOMIC_RELEASE);
}

/* Blocks of the store look as if they might be sampled ones, so that free need not ask whose a
 * block is that cannot be. */
static void filter_store(struct heap_process *p)
{
    for (size_t at = 0; at < heap_store_used(); at += 16) {
        uint32_t place = heap_filter_place((uint64_t)(uintptr_t)heap_store + at);
        p->filter_count[place]++;
        p->filter[place / 64] |= 1ull << place % 64;
    }
}

static void segment_take(struct heap_header *h, const struct heap_layout *layout)
{
    struct heap_process *p = heap_process;
    p->layout = *layout;
    __atomic_store_n(&p->segment, h, __ATOMIC_RELEASE);
    __atomic_fetch_add(&heap_tree->processes, 1, __ATOMIC_RELAXED);
    h->lost[HEAP_LOST_EARLY] = p->early;
    h->mappings_lost = p->early_mappings;
    filter_store(p);
    p->shared.owner = HEAP_NOBODY;
    place_fill(&p->shared, 0);
    regions_start();
}

/* The largest segment that the process's limits allow. 0, or a negative errno; -EAGAIN: later. */
static int segment_make(void)
{
    struct shape shape = {.memory = heap_settings.memory};
    uint64_t limit = publish_file_limit();
    for (; heap_layout(shape.memory, &shape.layout); shape.memory = shape.memory / 4 & ~4095ull) {
        void *at;
        if (shape.layout.size > limit)
            continue;
        int result = offer_make(SESSION_HEAP, shape.layout.size, header_fill, &shape, &at);
        if (result == 0)
            segment_take(at, &shape.layout);
        if (result != -ENOMEM)
            return result;
    }
    return -ENOMEM;
}

uint32_t heap_prepare(void)
{
    return heap_process ? offer_phase(&heap_process->offer, segment_make, SESSION_NO_HEAP)
                        : AGENT_OFF;
}

struct heap_thread *heap_enter(uint32_t *gate, bool allocates)
{
    uint32_t phase = heap_prepare();
    *gate = GATE_NEW;
    agent_self.heap = NULL;
    if (phase == AGENT_OFF)
        *gate = GATE_OFF;
    else if (phase != AGENT_RUNNING && allocates)
        heap_refuse(HEAP_LOST_EARLY, 0);
    if (phase != AGENT_RUNNING)
        return NULL;
    struct heap_thread *t = thread_new();
    agent_self.heap = t;
    *gate = t ? GATE_READY : GATE_LATE;
    return t;
}

/* The program ends in order. What it did not free is gone with it, but only the collector would
 * tell the tree, a little later; another process may have grown meanwhile. */
__attribute__((destructor)) static void leave(void)
{
    struct heap_process *p = heap_process;
    struct heap_header *h = p ? p->segment : NULL;
    if (!h)
        return;
    int64_t told = __atomic_exchange_n(&h->told, 0, __ATOMIC_ACQ_REL);
    h->left_number = heap_tree_leave(heap_tree, told);
    __atomic_store_n(&h->left, 1, __ATOMIC_SEQ_CST);
}

static void tree_map(const char *path)
{
    if (!path || !*path)
        return;
    struct heap_tree *tree = publish_map_sealed(path, 4096, PROT_READ | PROT_WRITE);
    if (tree && tree->magic == HEAP_MAGIC)
        heap_tree = tree;
    else if (tree)
        raw2(SYS_munmap, tree, 4096);
}

bool heap_restart(const struct heap_settings *settings, const char *tree)
{
    struct heap_process *p = heap_process;
    if (!p) {
        heap_start(settings, tree);
        return heap_process != NULL;
    }
    heap_settings = *settings;
    tree_map(tree);
    for (uint32_t i = 0; i < p->places; i++)
        if (heap_place(i))
            heap_place(i)->self = NULL;
    memset(p->claimed, 0, sizeof p->claimed);
    memset(p->filter, 0, sizeof p->filter);
    memset(p->filter_count, 0, sizeof p->filter_count);
    recent_forget_all();
    p->shared.segment = NULL;
    p->segment = NULL;
    p->offer.tries = p->places = p->maps_count = 0;
    __atomic_store_n(&p->offer.phase, AGENT_ABSENT, __ATOMIC_RELEASE);
    return true;
}

void heap_start(const struct heap_settings *settings, const char *tree)
{
    heap_settings = *settings;
    if (settings->mode == HEAP_OFF || !heap_real_resolve())
        return;
    tree_map(tree);
    int own = heap_own_hook(attach_active);
    if (own < 0 || (own == 0 && !attach_active && heap_real_is_passed_by()))
        session_send(SESSION_REFUSED, SESSION_OWN_MALLOC, -own, -1);
    has_key = pthread_key_create(&end_key, on_thread_end) == 0;
    struct heap_process *p = publish_map_wiped((sizeof *p + 4095) & ~4095ul);
    if (p)
        __atomic_store_n(&heap_process, p, __ATOMIC_RELEASE);
}
