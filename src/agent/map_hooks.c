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
static struct heap_thread *enter(const struct heap_frame *caller)
{
    uint32_t gate = agent_self.gate;
    if (!heap_process || (gate != GATE_READY && gate != GATE_NEW) ||
        heap_real_is_inside(caller->ip))
        return NULL;
    struct pass pass = pass_begin(caller, PASS_FREE);
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

static void added(const struct heap_frame *caller, void *at, size_t size, enum heap_kind kind)
{
    int saved = errno;
    struct heap_thread *t = enter(caller);
    if (!t)
        return;
    uint32_t paused = __atomic_load_n(&t->segment->paused, __ATOMIC_RELAXED);
    if (!paused)
        maps_add(t, (uint64_t)(uintptr_t)at, rounded(size), heap_cell_of_kind(t, caller, kind));
    gate_set(GATE_READY);
    errno = saved;
}

static uint32_t removed(const struct heap_frame *caller, const void *at, size_t size)
{
    uint64_t start = (uint64_t)(uintptr_t)at;
    int saved = errno;
    struct heap_thread *t = size && start % PAGE == 0 ? enter(caller) : NULL;
    if (!t)
        return 0;
    uint32_t cell = maps_remove(t, start, rounded(size));
    gate_set(GATE_READY);
    errno = saved;
    return cell;
}

static enum heap_kind kind_of(int flags)
{
    return flags & MAP_ANONYMOUS ? HEAP_MAPPED : HEAP_FILES;
}

static enum heap_kind kind_of_cell(uint32_t cell)
{
    const struct heap_cell *cells = heap_area(heap_process->layout.cells);
    return cells[cell].kind;
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

EXPORT void *mremap(void *at, size_t old, size_t size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *to = va_arg(list, void *);
    va_end(list);
    bool moves = old && !(flags & MREMAP_DONTUNMAP);
    uint32_t cell = moves ? removed(CALLER, at, old) : 0;
    void *block = REAL(mremap)(at, old, size, flags, to);
    struct heap_thread *t;
    if (likely(block != MAP_FAILED)) {
        added(CALLER, block, size, cell ? kind_of_cell(cell) : HEAP_MAPPED);
    } else if (cell && (t = enter(CALLER))) {
        int saved = errno;
        maps_add(t, (uint64_t)(uintptr_t)at, rounded(old), cell);
        gate_set(GATE_READY);
        errno = saved;
    }
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
