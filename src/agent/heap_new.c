/*
 * C++'s own functions. Those of libstdc++ call malloc and free, which are hooked; those that an
 * allocator brings (jemalloc, tcmalloc, mimalloc) go its own ways, so they are recorded here. A
 * program may load its first C++ library long after its start, and into a scope where RTLD_NEXT
 * does not look: then the usual libraries are asked by name. All are looked up at once, at the
 * start or by the first call: the loader's lock may be with a thread that waits for the one that
 * calls (a constructor that waits for a thread), and a plain call would not want it.
 *
 * Names are mangled: nw new, na new[], dl delete, da delete[]; m a size, St11align_val_t an
 * alignment, RKSt9nothrow_t the one that returns NULL instead of throwing.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "agent/attach.h"
#include "agent/heap_operators.h"
#include "agent/heap_pass.h"
#include "agent/heap_real.h"
#include "agent/real.h"

typedef void (*any_function)(void);

static any_function look_up(const char *name)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    any_function found;
    __extension__ found =
        (any_function)(attach_active ? real_defined(name) : dlsym(RTLD_NEXT, name));
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = REAL(dlopen)(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        __extension__ found = (any_function)dlsym(library, name);
        dlclose(library);
    }
    return found;
}

static void look_up_all(void);

/* The real function of a hook. There is one wherever there is a caller. */
static inline any_function real_of(any_function *known)
{
    if (unlikely(!__atomic_load_n(known, __ATOMIC_RELAXED)))
        look_up_all();
    return __atomic_load_n(known, __ATOMIC_RELAXED);
}

static inline bool is_allocators(any_function f)
{
    return heap_real_is_inside((uint64_t)(uintptr_t)f);
}

#define NEW(name, parameters, arguments)                                                           \
    static any_function known_##name;                                                              \
    EXPORT void *name parameters;                                                                  \
    EXPORT void *name parameters                                                                   \
    {                                                                                              \
        void *(*real)parameters = (void *(*)parameters)real_of(&known_##name);                     \
        if (unlikely(!real))                                                                       \
            return malloc(size);                                                                   \
        if (likely(!is_allocators((any_function)real)))                                            \
            return real arguments;                                                                 \
        struct pass pass = pass_begin(CALLER, size);                                               \
        if (skip(pass, size))                                                                      \
            return real arguments;                                                                 \
        real_begin(pass);                                                                          \
        void *block = real arguments;                                                              \
        return record(pass, block, size, CALLER);                                                  \
    }

#define DELETE(name, parameters, arguments)                                                        \
    static any_function known_##name;                                                              \
    EXPORT void name parameters;                                                                   \
    EXPORT void name parameters                                                                    \
    {                                                                                              \
        void(*real) parameters = (void(*) parameters)real_of(&known_##name);                       \
        if (unlikely(!real)) {                                                                     \
            free(block);                                                                           \
            return;                                                                                \
        }                                                                                          \
        if (unlikely(is_allocators((any_function)real) && block))                                  \
            forget(block, CALLER);                                                                 \
        real arguments;                                                                            \
    }

#define ANY const void *nothrow
NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, ANY), (size, nothrow))
NEW(_ZnamRKSt9nothrow_t, (size_t size, ANY), (size, nothrow))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnamSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, ANY), (size, align, nothrow))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, ANY), (size, align, nothrow))

DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, ANY), (block, nothrow))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, ANY), (block, nothrow))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, ANY),
       (block, align, nothrow))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, ANY),
       (block, align, nothrow))

static const struct {
    const char *name;
    any_function *known;
} operators[] = {
#define OPERATOR(name) {#name, &known_##name},
    HEAP_OPERATORS(OPERATOR) OPERATOR(_ZdlPvSt11align_val_tRKSt9nothrow_t)
        OPERATOR(_ZdaPvSt11align_val_tRKSt9nothrow_t)
#undef OPERATOR
};

static void look_up_all(void)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!__atomic_load_n(operators[i].known, __ATOMIC_RELAXED))
            __atomic_store_n(operators[i].known, look_up(operators[i].name), __ATOMIC_RELAXED);
}

/* There wherever C++ is; the loader has looked for it, which costs less than to ask it. */
extern void __cxa_throw(void) __attribute__((weak));

void heap_new_resolve(void)
{
    if (__cxa_throw)
        look_up_all();
}
