/* See python_heap.h. */
#include "agent/python_heap.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/arch.h"
#include "agent/publish.h"
#include "agent/ring.h"
#include "cpython/memory.h"

#define PAGE_SHIFT 12
#define WALKS 256
#define STEP 200000u           /* ns */
#define WAIT_MAX (1000000000u) /* ns, for the collector, of a thread in all */
#define FACTOR 0x9e3779b97f4a7c15ull
#define OTHER_FACTOR 0xd6e8feb86659fd93ull

/* Of a thread; apart from the sampler's, which may come in between. */
struct python_heap {
    uint32_t generation; /* of the slot whose reader was told */
    uint32_t left;       /* walks until `memory` is looked at anew */
    uint64_t state;      /* of the thread, at the last walk */
    uint64_t page;       /* where a frame was, at the last walk */
    size_t frame_size;
    uint64_t waited; /* ns */
    struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_frame frame[HEAP_PYTHON_DEPTH];
    struct python_told told;
};

static struct python_heap *memory_of(struct heap_thread *t)
{
    if (t->python)
        return t->python;
    if (agent_quiet)
        return NULL;
    /* The child's thread is wiped, and then nothing would lead here any more. */
    t->python = publish_map_advised(sizeof *t->python, MADV_DONTFORK);
    return t->python;
}

/* The calling thread's state, if it is in Python at all. */
static uint64_t state_of(void)
{
    void *(*this_thread)(void);
    memcpy(&this_thread, &agent_python.py.this_thread, sizeof this_thread);
    return (uint64_t)(uintptr_t)this_thread();
}

static uint64_t word_at(uint64_t address)
{
    uint64_t word;
    memcpy(&word, (const void *)(uintptr_t)address, sizeof word);
    return word;
}

/* Most frames lie in the page of the one before, and those of the call before. */
static inline bool can_read(struct python_heap *p, uint64_t address, uint64_t size)
{
    if (__builtin_expect(address >> PAGE_SHIFT == p->page, 1) &&
        (address + size - 1) >> PAGE_SHIFT == p->page)
        return true;
    if (!address_is_sane(address) || !memory_is_readable(&p->memory, address, size))
        return false;
    p->page = address >> PAGE_SHIFT;
    return true;
}

/* The innermost frame, or 0. */
static inline uint64_t frame_of(struct python_heap *p, uint64_t state)
{
    const struct layout *l = &agent_python.py.layout;
    if (p->state != state && !memory_is_readable(&p->memory, state, l->thread_frame + 8))
        return 0;
    p->state = state;
    uint64_t frame = word_at(state + l->thread_frame);
    if (l->cframe_frame == LAYOUT_ABSENT)
        return frame;
    /* The _PyCFrame is on the C stack. */
    bool here = frame >= p->memory.stack_low && frame + 64 <= p->memory.stack_high;
    return here || memory_is_readable(&p->memory, frame, l->cframe_frame + 8)
               ? word_at(frame + l->cframe_frame)
               : 0;
}

/* Over code and instruction of all frames, as they lie there: who is told what they are walks again
 * and looks closer. 0: there are none. */
static inline uint64_t hash_frames(struct python_heap *p, uint64_t state)
{
    const struct layout *l = &agent_python.py.layout;
    uint64_t hash = 0x51ed270b0a1f39c1ull, frame = frame_of(p, state), size = p->frame_size;
    bool far = l->frame_lasti == LAYOUT_ABSENT;
    uint64_t place = far ? l->frame_instr : l->frame_lasti, code = l->frame_code;
    uint64_t back = l->frame_back, of_place = far ? UINT64_MAX : UINT32_MAX;
    size_t count = 0;
    for (; frame && count < HEAP_PYTHON_DEPTH && can_read(p, frame, size); count++) {
        /* One multiplication waits for the one before, so there is only one a frame. */
        uint64_t where = word_at(frame + place) & of_place;
        hash = (hash ^ (word_at(frame + code) + where * OTHER_FACTOR)) * FACTOR;
        hash ^= hash >> 29;
        frame = word_at(frame + back);
    }
    return count ? (hash ^ hash >> 32) | 1 : 0;
}

/* What is known to be readable is believed for a while: see cpython_memory_local. */
static void renew(struct python_heap *p)
{
    p->left = WALKS;
    p->page = p->state = 0;
    p->frame_size = layout_frame_size(&agent_python.py.layout);
    cpython_memory_local(&p->memory, &p->pages, python_probe, 0, 0);
}

void python_heap_walk(struct heap_thread *t, uint64_t sp)
{
    uint64_t state = state_of();
    struct python_heap *p = state ? memory_of(t) : NULL;
    t->salt = 0;
    if (!p)
        return;
    if (!p->left--)
        renew(p);
    bool own = sp >= t->stack_low && sp < t->stack_end;
    p->memory.stack_low = own ? sp : 0;
    p->memory.stack_high = own ? t->stack_end : 0;
    t->salt = hash_frames(p, state);
}

/* A child after fork shows itself at its first sample, which may be far away. Not to be interrupted
 * by that: it would do the same. */
static bool has_slot(struct agent_thread *thread)
{
    uint64_t all = ~0ull, old = 0;
    if (!thread || thread->slot || agent_quiet)
        return thread && thread->slot;
    raw4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &old, sizeof all);
    if (agent_phase() == AGENT_WAITING)
        publish_segment();
    if (agent_phase() == AGENT_RUNNING)
        publish_thread(thread);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof old);
    return thread->slot;
}

/* Names go through the ring, and a program that starts has many: a collector that is late would
 * make them anonymous for good, since a stack is told once. Some time is given to it, in all. */
static void room_wait(struct python_heap *p, const struct agent_thread *thread)
{
    size_t words = agent_settings.ring_bytes / SEGMENT_WORD_BYTES / 4;
    struct timespec step = {.tv_nsec = STEP};
    while (!agent_quiet && p->waited < WAIT_MAX && !ring_has_room(thread, words)) {
        raw2(SYS_nanosleep, &step, NULL);
        p->waited += STEP;
    }
}

size_t python_heap_tell(struct heap_thread *t, uint64_t *words, bool *whole)
{
    struct python_heap *p = t->python;
    struct agent_thread *thread = agent_self.thread;
    struct cpython_end end;
    if (!has_slot(thread))
        return 0;
    size_t count =
        cpython_walk(&agent_python.py, &p->memory, p->state, p->frame, HEAP_PYTHON_DEPTH, &end);
    *whole = end.reason == CPYTHON_COMPLETE;
    if (p->generation != thread->slot->generation) {
        memset(p->told.known, 0, sizeof p->told.known);
        p->generation = thread->slot->generation;
    }
    for (size_t i = 0; i < count; i++) {
        const struct cpython_frame *f = &p->frame[i];
        room_wait(p, thread);
        uint64_t stamp = python_introduce(thread, &p->told, &p->memory, f->code);
        words[2 * i] = f->code;
        words[2 * i + 1] = (uint64_t)(uint32_t)f->lasti | (stamp & HEAP_STAMP_MASK) << 32 |
                           (uint64_t)(f->flags & 15) << 60;
    }
    return count;
}
