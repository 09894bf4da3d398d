/* See python_heap.h. */
#include "agent/python_heap.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"
#include "cpython/memory.h"

#define PAGE_SHIFT 12
#define FACTOR 0x9e3779b97f4a7c15ull

/* Of a thread; apart from the sampler's, which may come in between. */
struct python_heap {
    uint32_t generation; /* of the slot whose reader was told */
    uint64_t state;      /* of the thread, at the last walk */
    struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_frame frame[HEAP_PYTHON_DEPTH];
    struct python_told told;
};

static struct python_heap *memory_of(struct heap_thread *t)
{
    size_t size = sizeof *t->python;
    if (t->python)
        return t->python;
    if (agent_quiet)
        return NULL;
    long at = raw6(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at > -4096)
        return NULL;
    /* The child's thread is wiped, and then nothing would lead here any more. */
    if (raw3(SYS_madvise, at, size, MADV_DONTFORK) != 0) {
        raw2(SYS_munmap, at, size);
        return NULL;
    }
    t->python = (struct python_heap *)at;
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

/* Most frames lie in the same page as the one before. */
static inline bool can_read(const struct python_heap *p, uint64_t address, uint64_t size,
                            uint64_t *page)
{
    if (__builtin_expect(address >> PAGE_SHIFT == *page, 1) &&
        (address + size - 1) >> PAGE_SHIFT == *page)
        return true;
    *page = address >> PAGE_SHIFT;
    return address_is_sane(address) && memory_is_readable(&p->memory, address, size);
}

/* The innermost frame, or 0. */
static uint64_t frame_of(const struct python_heap *p, uint64_t state, uint64_t *page)
{
    const struct layout *l = &agent_python.py.layout;
    if (!can_read(p, state, l->thread_frame + 8, page))
        return 0;
    uint64_t frame = word_at(state + l->thread_frame);
    if (l->cframe_frame == LAYOUT_ABSENT)
        return frame;
    return can_read(p, frame, l->cframe_frame + 8, page) ? word_at(frame + l->cframe_frame) : 0;
}

/* Over code and instruction of all frames, as they lie there: who is told what they are walks again
 * and looks closer. 0: there are none. */
static uint64_t hash_frames(const struct python_heap *p, uint64_t state)
{
    const struct layout *l = &agent_python.py.layout;
    uint64_t hash = 0x51ed270b0a1f39c1ull, page = 0, frame = frame_of(p, state, &page);
    bool far = l->frame_lasti == LAYOUT_ABSENT;
    uint32_t place = far ? l->frame_instr : l->frame_lasti;
    uint64_t size = layout_frame_size(l);
    size_t count = 0;
    for (; frame && count < HEAP_PYTHON_DEPTH && can_read(p, frame, size, &page); count++) {
        uint64_t where = word_at(frame + place);
        hash = (hash ^ word_at(frame + l->frame_code)) * FACTOR;
        hash = (hash ^ (far ? where : (uint32_t)where)) * FACTOR;
        frame = word_at(frame + l->frame_back);
    }
    return count ? (hash ^ hash >> 32) | 1 : 0;
}

void python_heap_walk(struct heap_thread *t, uint64_t sp)
{
    uint64_t state = state_of();
    struct python_heap *p = state ? memory_of(t) : NULL;
    t->salt = 0;
    if (!p)
        return;
    bool own = sp >= t->stack_low && sp < t->stack_end;
    cpython_memory_local(&p->memory, &p->pages, python_probe, own ? sp : 0, own ? t->stack_end : 0);
    p->state = state;
    t->salt = hash_frames(p, state);
}

size_t python_heap_tell(struct heap_thread *t, uint64_t *words, bool *whole)
{
    struct python_heap *p = t->python;
    struct agent_thread *thread = agent_self.thread;
    struct cpython_end end;
    if (!thread || !thread->slot)
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
        uint64_t stamp = python_introduce(thread, &p->told, &p->memory, f->code);
        words[2 * i] = f->code;
        words[2 * i + 1] = (uint64_t)(uint32_t)f->lasti | (stamp & HEAP_STAMP_MASK) << 32 |
                           (uint64_t)(f->flags & 15) << 60;
    }
    return count;
}
