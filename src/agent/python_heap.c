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

#define PAGE 4096ull
#define SPANS 2
#define SPAN_MAX (64ull << 10)
#define WALKS 256
#define STEP 200000u           /* ns */
#define WAIT_MAX (1000000000u) /* ns, for the collector, of a thread in all */
#define FACTOR 0x9e3779b97f4a7c15ull
#define OTHER_FACTOR 0xd6e8feb86659fd93ull

/* Bytes that can be read; a frame may begin at the first `room` of them. */
struct span {
    uint64_t start, end, room;
};

/* Of a thread; apart from the sampler's, which may come in between. */
struct python_heap {
    uint32_t generation; /* of the slot whose reader was told */
    uint32_t left;       /* walks until `memory` is looked at anew */
    uint64_t state;      /* of the thread, at the last walk */
    size_t frame_size;
    uint64_t stack_room;     /* as a span's, of the C stack */
    struct span span[SPANS]; /* where frames were: the thread's own, and those of generators */
    uint64_t waited;         /* ns */
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

static void span_set(struct python_heap *p, struct span *s, uint64_t start, uint64_t end)
{
    *s = (struct span){start, end, end - start - p->frame_size + 1};
}

/* A frame elsewhere: its page is added to the span beside it, or begins one in the older's place.
 */
static __attribute__((noinline)) bool can_read_slowly(struct python_heap *p, uint64_t frame)
{
    uint64_t start = frame & ~(PAGE - 1), end = (frame + p->frame_size + PAGE - 1) & ~(PAGE - 1);
    if (!address_is_sane(frame) || !memory_is_readable(&p->memory, frame, p->frame_size))
        return false;
    for (struct span *s = p->span; s < p->span + SPANS; s++) {
        bool touches = start <= s->end && s->start <= end;
        uint64_t low = start < s->start ? start : s->start, high = end > s->end ? end : s->end;
        if (touches && high - low <= SPAN_MAX) {
            span_set(p, s, low, high);
            return true;
        }
    }
    p->span[1] = p->span[0];
    span_set(p, &p->span[0], start, end);
    return true;
}

/* Frames that begin a call of the loop are on the C stack, in some versions. */
static inline bool can_read(struct python_heap *p, uint64_t frame)
{
    return frame - p->span[0].start < p->span[0].room ||
           frame - p->memory.stack_low < p->stack_room ||
           frame - p->span[1].start < p->span[1].room || can_read_slowly(p, frame);
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
    uint64_t hash = 0x51ed270b0a1f39c1ull, frame = frame_of(p, state);
    bool far = l->frame_lasti == LAYOUT_ABSENT;
    uint64_t place = far ? l->frame_instr : l->frame_lasti, code = l->frame_code;
    uint64_t back = l->frame_back, of_place = far ? UINT64_MAX : UINT32_MAX;
    size_t left = HEAP_PYTHON_DEPTH;
    for (; frame && left && can_read(p, frame); left--) {
        /* One multiplication waits for the one before, so there is only one a frame. */
        uint64_t where = word_at(frame + place) & of_place;
        hash = (hash + word_at(frame + code) + where * OTHER_FACTOR) * FACTOR;
        frame = word_at(frame + back);
    }
    return left < HEAP_PYTHON_DEPTH ? (hash ^ hash >> 32) | 1 : 0;
}

/* What is known to be readable is believed for a while: see cpython_memory_local. */
static void renew(struct python_heap *p)
{
    p->left = WALKS;
    p->state = 0;
    p->frame_size = layout_frame_size(&agent_python.py.layout);
    memset(p->span, 0, sizeof p->span);
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
    p->stack_room =
        own && t->stack_end - sp >= p->frame_size ? t->stack_end - sp - p->frame_size : 0;
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

/* The stamp of a frame's code, of which the collector has been told. */
static uint64_t introduce(struct python_heap *p, struct agent_thread *thread, uint64_t code)
{
    bool known = false;
    uint64_t stamp = python_stamp(&p->told, &p->memory, code, &known);
    if (!stamp || known)
        return stamp;
    room_wait(p, thread);
    return python_introduce(thread, &p->told, &p->memory, code);
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
    uint64_t stamp = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cpython_frame *f = &p->frame[i];
        if (!i || f->code != f[-1].code)
            stamp = introduce(p, thread, f->code);
        words[2 * i] = f->code;
        words[2 * i + 1] = (uint64_t)(uint32_t)f->lasti | (stamp & HEAP_STAMP_MASK) << 32 |
                           (uint64_t)(f->flags & 15) << 60;
    }
    return count;
}
