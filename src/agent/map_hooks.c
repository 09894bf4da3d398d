/*
 * The interposed calls that give a program memory from the kernel. What its allocator asks for does
 * not come by (libc's) or is known by its caller (a library's), and is not recorded: it is in the
 * heap's sums already. A range is taken out before the kernel can give it to another thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "agent/attach.h"
#include "agent/heap_pass.h"
#include "agent/heap_real.h"
#include "agent/real.h"

#define PAGE 4096ull

int brk(void *to); /* <unistd.h>, with the next one */
void *sbrk(intptr_t by);
/* Two names for one call; where offsets have 64 bits always, <sys/mman.h> makes one of them. */
EXPORT void *hook_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");
EXPORT void *hook_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64");

/* The thread of a call that is recorded, its gate BUSY; or NULL. */
static struct heap_thread *enter(const struct heap_frame *caller, bool maps)
{
    uint32_t gate = agent_self.gate;
    if (!heap_process || (gate != GATE_READY && gate != GATE_NEW) ||
        heap_real_is_inside(caller->ip))
        return NULL;
    struct pass pass = pass_begin(caller, PASS_FREE);
    if (maps && !pass.thread && pass.gate == GATE_NEW)
        heap_refuse_mapping(); /* the segment is just being made */
    if (pass.thread && pass.gate != GATE_READY)
        pass_end(pass);
    if (!pass.thread || pass.gate != GATE_READY)
        return NULL;
    pass.thread->busy_sp = (uint64_t)(uintptr_t)caller;
    gate_set(GATE_BUSY);
    return pass.thread;
}

static uint64_t rounded(size_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

static bool is_paused(const struct heap_thread *t)
{
    return __atomic_load_n(&t->segment->paused, __ATOMIC_RELAXED) != 0;
}

static void added(const struct heap_frame *caller, void *at, size_t size, enum heap_kind kind)
{
    int saved = errno;
    struct heap_thread *t = enter(caller, true);
    if (!t)
        return;
    if (!is_paused(t))
        maps_add(t, (uint64_t)(uintptr_t)at, rounded(size), heap_cell_of_kind(t, caller, kind));
    gate_set(GATE_READY);
    errno = saved;
}

static void removed(const struct heap_frame *caller, const void *at, size_t size)
{
    uint64_t start = (uint64_t)(uintptr_t)at;
    int saved = errno;
    struct heap_thread *t = size && start % PAGE == 0 ? enter(caller, false) : NULL;
    if (!t)
        return;
    maps_remove(t, start, rounded(size));
    gate_set(GATE_READY);
    errno = saved;
}

static enum heap_kind kind_of(int flags)
{
    return flags & MAP_ANONYMOUS ? HEAP_MAPPED : HEAP_FILES;
}

EXPORT void *hook_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *block = REAL(mmap)(at, size, protection, flags, fd, offset);
    if (likely(block != MAP_FAILED))
        added(CALLER, block, size, kind_of(flags));
    return block;
}

EXPORT void *hook_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *block = REAL(mmap64)(at, size, protection, flags, fd, offset);
    if (likely(block != MAP_FAILED))
        added(CALLER, block, size, kind_of(flags));
    return block;
}

EXPORT int munmap(void *at, size_t size)
{
    removed(CALLER, at, size);
    int result = REAL(munmap)(at, size);
    barrier();
    return result;
}

struct move {
    uint64_t from, old; /* 0 bytes: what is there stays */
    uint64_t to, size;
};

static void moved(struct heap_thread *t, const struct heap_frame *caller, const struct move *m)
{
    enum heap_kind kind = HEAP_MAPPED;
    if (m->old)
        kind = maps_remove_held(t, m->from, m->old);
    if (!is_paused(t))
        maps_add_held(t, m->to, m->size, heap_cell_of_kind(t, caller, kind));
}

/* The kernel gives the old range away, or does not, in one step with what we know of it: others who
 * get it wait for us. */
EXPORT void *mremap(void *at, size_t old, size_t size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *to = va_arg(list, void *);
    va_end(list);
    int saved = errno;
    struct heap_thread *t = enter(CALLER, true);
    bool held = t && maps_hold(t);
    errno = saved;
    void *block = REAL(mremap)(at, old, size, flags, to);
    saved = errno;
    struct move move = {.from = (uint64_t)(uintptr_t)at,
                        .old = flags & MREMAP_DONTUNMAP ? 0 : rounded(old),
                        .to = (uint64_t)(uintptr_t)block,
                        .size = rounded(size)};
    if (held && block != MAP_FAILED)
        moved(t, CALLER, &move);
    else if (t && block != MAP_FAILED)
        heap_refuse_mapping();
    if (held)
        maps_let_go(t);
    if (t)
        gate_set(GATE_READY);
    errno = saved;
    return block;
}

/* The program's break went from one address to another. */
static void break_moved(const struct heap_frame *caller, uint64_t from, uint64_t to)
{
    from = rounded(from);
    to = rounded(to);
    if (to > from)
        added(caller, (void *)(uintptr_t)from, to - from, HEAP_MAPPED);
    else if (to < from)
        removed(caller, (void *)(uintptr_t)to, from - to);
}

EXPORT int brk(void *to)
{
    void *from = REAL(sbrk)(0);
    int result = REAL(brk)(to);
    if (result == 0 && from != (void *)-1)
        break_moved(CALLER, (uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)to);
    return result;
}

EXPORT void *sbrk(intptr_t by)
{
    void *from = REAL(sbrk)(by);
    uint64_t start = (uint64_t)(uintptr_t)from;
    if (from != (void *)-1 && by)
        break_moved(CALLER, start, start + (uint64_t)by);
    return from;
}
