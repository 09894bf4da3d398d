/* See python_heap.h. */
#include "agent/python_heap.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/arch.h"

#define FACTOR 0x9e3779b97f4a7c15ull

/* Of a thread; apart from the sampler's, which may come in between. */
struct python_heap {
    uint32_t generation; /* of the slot whose reader was told */
    size_t count;
    bool whole;
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

void python_heap_walk(struct heap_thread *t, uint64_t sp)
{
    struct cpython_end end;
    uint64_t state = state_of(), hash = 0x51ed270b0a1f39c1ull;
    struct python_heap *p = state ? memory_of(t) : NULL;
    t->salt = 0;
    if (!p)
        return;
    bool own = sp >= t->stack_low && sp < t->stack_end;
    cpython_memory_local(&p->memory, &p->pages, python_probe, own ? sp : 0, own ? t->stack_end : 0);
    p->count = cpython_walk(&agent_python.py, &p->memory, state, p->frame, HEAP_PYTHON_DEPTH, &end);
    p->whole = end.reason == CPYTHON_COMPLETE;
    for (size_t i = 0; i < p->count; i++)
        hash = (hash ^ p->frame[i].code ^ (uint64_t)(uint32_t)p->frame[i].lasti << 48) * FACTOR;
    t->salt = p->count ? (hash ^ hash >> 32) | 1 : 0;
}

size_t python_heap_tell(struct heap_thread *t, uint64_t *words, bool *whole)
{
    struct python_heap *p = t->python;
    struct agent_thread *thread = agent_self.thread;
    *whole = p->whole;
    if (!thread || !thread->slot)
        return 0;
    if (p->generation != thread->slot->generation) {
        memset(p->told.known, 0, sizeof p->told.known);
        p->generation = thread->slot->generation;
    }
    for (size_t i = 0; i < p->count; i++) {
        const struct cpython_frame *f = &p->frame[i];
        uint64_t stamp = python_introduce(thread, &p->told, &p->memory, f->code);
        words[2 * i] = f->code;
        words[2 * i + 1] = (uint64_t)(uint32_t)f->lasti | (stamp & HEAP_STAMP_MASK) << 32 |
                           (uint64_t)(f->flags & 15) << 60;
    }
    return p->count;
}
