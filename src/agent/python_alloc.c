/* See python_alloc.h. While the allocator behind works the gate is OFF: what it asks malloc for is
 * the same memory again. */
#include "agent/python_alloc.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "agent/heap_pass.h"
#include "agent/python.h"

/* PyMemAllocatorEx and PyObjectArenaAllocator, the same in all versions. */
struct allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t each);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};

struct arenas {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *arena, size_t size);
};

enum { DOMAIN_MEM = 1, DOMAIN_OBJ = 2, DOMAINS };

static struct allocator behind[DOMAINS];
static struct arenas arenas_behind;

static void *mem_malloc(void *ctx, size_t size)
{
    const struct allocator *real = ctx;
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return real->malloc(real->ctx, size);
    gate_set(GATE_OFF);
    void *block = real->malloc(real->ctx, size);
    return record(pass, block, size, CALLER);
}

static void *mem_calloc(void *ctx, size_t count, size_t each)
{
    const struct allocator *real = ctx;
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size)))
        size = SIZE_MAX;
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return real->calloc(real->ctx, count, each);
    gate_set(GATE_OFF);
    void *block = real->calloc(real->ctx, count, each);
    return record(pass, block, size, CALLER);
}

static void *mem_realloc(void *ctx, void *block, size_t size)
{
    const struct allocator *real = ctx;
    struct pass pass = pass_begin(CALLER, size);
    struct heap_thread *t = pass.thread;
    uint64_t old = (uint64_t)(uintptr_t)block;
    struct heap_block was = {0};
    if (unlikely(!t))
        return real->realloc(real->ctx, block, size);
    bool over = passed_over(t, size);
    t->busy_sp = (uint64_t)(uintptr_t)CALLER;
    gate_set(GATE_BUSY);
    if (block && heap_may_know(t, old))
        was = heap_take(t, old);
    gate_set(GATE_OFF);
    void *now = real->realloc(real->ctx, block, size);
    gate_set(GATE_BUSY);
    if (!now && was.cell)
        heap_put_back(t, old, was);
    if (now && block)
        heap_on_free(t, old, was);
    if (now && !over)
        heap_on_alloc(t, (uint64_t)(uintptr_t)now, size, CALLER);
    pass_end(pass);
    return now;
}

static void mem_free(void *ctx, void *block)
{
    const struct allocator *real = ctx;
    if (block)
        forget(block, CALLER);
    uint32_t gate = agent_self.gate;
    if (gate == GATE_READY)
        gate_set(GATE_OFF);
    real->free(real->ctx, block);
    gate_set(gate);
}

static void *arena_alloc(void *ctx, size_t size)
{
    (void)ctx;
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return arenas_behind.alloc(arenas_behind.ctx, size);
    gate_set(GATE_OFF);
    void *arena = arenas_behind.alloc(arenas_behind.ctx, size);
    return record(pass, arena, size, CALLER);
}

static void arena_free(void *ctx, void *arena, size_t size)
{
    (void)ctx;
    forget(arena, CALLER);
    arenas_behind.free(arenas_behind.ctx, arena, size);
}

/* A function of the interpreter's by its name, or NULL. */
static void (*function(void *handle, const char *name))(int, void *)
{
    void (*found)(int, void *);
    void *at = dlsym(handle ? handle : RTLD_DEFAULT, name);
    memcpy(&found, &at, sizeof found);
    return found;
}

static void hook_each(void *handle)
{
    void (*get)(int, void *) = function(handle, "PyMem_GetAllocator");
    void (*set)(int, void *) = function(handle, "PyMem_SetAllocator");
    for (int domain = DOMAIN_MEM; get && set && domain < DOMAINS; domain++) {
        get(domain, &behind[domain]);
        struct allocator ours = {&behind[domain], mem_malloc, mem_calloc, mem_realloc, mem_free};
        set(domain, &ours);
    }
}

static void hook_arenas(void *handle)
{
    void (*get)(void *), (*set)(void *);
    void *at[2] = {dlsym(handle ? handle : RTLD_DEFAULT, "PyObject_GetArenaAllocator"),
                   dlsym(handle ? handle : RTLD_DEFAULT, "PyObject_SetArenaAllocator")};
    memcpy(&get, &at[0], sizeof get);
    memcpy(&set, &at[1], sizeof set);
    if (!get || !set)
        return;
    get(&arenas_behind);
    struct arenas ours = {NULL, arena_alloc, arena_free};
    set(&ours);
}

void python_alloc_hook(void *handle, bool each)
{
    static bool done;
    if (done || !heap_process || !agent_python.ready)
        return;
    done = true;
    if (each)
        hook_each(handle);
    else
        hook_arenas(handle);
}
