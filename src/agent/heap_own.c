/*
 * The hooks of an allocator that is part of the program; see heap_own.h. They are apart from those
 * of heap_hooks.c, since such a one may hand on to the next in the loader's order, which is us.
 *
 * An allocator is known by its functions' names behind one of a few prefixes; two names may stand
 * for one function.
 */
#include "agent/heap_own.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "agent/detour.h"
#include "agent/heap_operators.h"
#include "agent/heap_pass.h"
#include "agent/own_symbols.h"

bool heap_own_active;

#define RANGES_MAX 64
static struct own_symbol range[RANGES_MAX]; /* of its functions */
static size_t ranges;

bool heap_own_is_among(const uint64_t *address, size_t count)
{
    for (size_t i = 0; ranges && i < count; i++)
        for (size_t k = 0; k < ranges; k++)
            if (address[i] - range[k].address < range[k].size)
                return true;
    return false;
}

/* C++'s may leave by an exception: pass_slowly sees by the stack that they are gone. */
static inline void own_begin(struct pass pass, const struct heap_frame *caller)
{
    pass.thread->busy_sp = (uint64_t)(uintptr_t)caller;
    real_begin(pass);
}

#define ALLOCATES(name, bytes, parameters, arguments)                                              \
    static void *(*real_##name)parameters;                                                         \
    static void *own_##name parameters                                                             \
    {                                                                                              \
        size_t asked = bytes;                                                                      \
        struct pass pass = pass_begin(CALLER, asked);                                              \
        if (skip(pass, asked))                                                                     \
            return real_##name arguments;                                                          \
        own_begin(pass, CALLER);                                                                   \
        void *block = real_##name arguments;                                                       \
        return record(pass, block, asked, CALLER);                                                 \
    }

#define CHANGES(name, bytes, parameters, arguments)                                                \
    static void *(*real_##name)parameters;                                                         \
    static void *own_##name parameters                                                             \
    {                                                                                              \
        size_t asked = bytes;                                                                      \
        struct pass pass = pass_begin(CALLER, asked);                                              \
        if (unlikely(!pass.thread))                                                                \
            return real_##name arguments;                                                          \
        struct again again = realloc_begin(pass, block, asked, CALLER);                            \
        void *now = real_##name arguments;                                                         \
        return realloc_end(pass, &again, now, CALLER);                                             \
    }

#define FREES(name, parameters, arguments)                                                         \
    static void(*real_##name) parameters;                                                          \
    static void own_##name parameters                                                              \
    {                                                                                              \
        struct pass pass = {.thread = NULL};                                                       \
        if (likely(block != NULL))                                                                 \
            pass = forget_begin(block, CALLER);                                                    \
        real_##name arguments;                                                                     \
        if (likely(pass.thread != NULL))                                                           \
            pass_end(pass);                                                                        \
    }

static size_t product(size_t count, size_t each)
{
    size_t size;
    return __builtin_mul_overflow(count, each, &size) ? SIZE_MAX : size;
}

ALLOCATES(malloc, size, (size_t size), (size))
ALLOCATES(calloc, product(count, each), (size_t count, size_t each), (count, each))
CHANGES(realloc, size, (void *block, size_t size), (block, size))
CHANGES(reallocarray, product(count, each), (void *block, size_t count, size_t each),
        (block, count, each))
FREES(free, (void *block), (block))
FREES(cfree, (void *block), (block))
ALLOCATES(aligned_alloc, size, (size_t align, size_t size), (align, size))
ALLOCATES(memalign, size, (size_t align, size_t size), (align, size))
ALLOCATES(valloc, size, (size_t size), (size))
ALLOCATES(pvalloc, size, (size_t size), (size))

static int (*real_posix_memalign)(void **, size_t, size_t);
static int own_posix_memalign(void **out, size_t align, size_t size)
{
    struct pass pass = pass_begin(CALLER, size);
    if (skip(pass, size))
        return real_posix_memalign(out, align, size);
    own_begin(pass, CALLER);
    int result = real_posix_memalign(out, align, size);
    record(pass, result == 0 ? *out : NULL, size, CALLER);
    return result;
}

/* Of jemalloc */
ALLOCATES(mallocx, size, (size_t size, int flags), (size, flags))
CHANGES(rallocx, size, (void *block, size_t size, int flags), (block, size, flags))
FREES(dallocx, (void *block, int flags), (block, flags))
FREES(sdallocx, (void *block, size_t size, int flags), (block, size, flags))
/* Of mimalloc */
ALLOCATES(zalloc, size, (size_t size), (size))
ALLOCATES(malloc_small, size, (size_t size), (size))
ALLOCATES(zalloc_small, size, (size_t size), (size))
ALLOCATES(malloc_aligned, size, (size_t size, size_t align), (size, align))
ALLOCATES(zalloc_aligned, size, (size_t size, size_t align), (size, align))
CHANGES(realloc_aligned, size, (void *block, size_t size, size_t align), (block, size, align))
FREES(free_size, (void *block, size_t size), (block, size))
FREES(free_aligned, (void *block, size_t align), (block, align))
FREES(free_size_aligned, (void *block, size_t size, size_t align), (block, size, align))
/* Of C++; heap_new.c says how to read them */
#define ANY const void *nothrow
ALLOCATES(_Znwm, size, (size_t size), (size))
ALLOCATES(_Znam, size, (size_t size), (size))
ALLOCATES(_ZnwmRKSt9nothrow_t, size, (size_t size, ANY), (size, nothrow))
ALLOCATES(_ZnamRKSt9nothrow_t, size, (size_t size, ANY), (size, nothrow))
ALLOCATES(_ZnwmSt11align_val_t, size, (size_t size, size_t align), (size, align))
ALLOCATES(_ZnamSt11align_val_t, size, (size_t size, size_t align), (size, align))
ALLOCATES(_ZnwmSt11align_val_tRKSt9nothrow_t, size, (size_t size, size_t align, ANY),
          (size, align, nothrow))
ALLOCATES(_ZnamSt11align_val_tRKSt9nothrow_t, size, (size_t size, size_t align, ANY),
          (size, align, nothrow))
FREES(_ZdlPv, (void *block), (block))
FREES(_ZdaPv, (void *block), (block))
FREES(_ZdlPvm, (void *block, size_t size), (block, size))
FREES(_ZdaPvm, (void *block, size_t size), (block, size))
FREES(_ZdlPvRKSt9nothrow_t, (void *block, ANY), (block, nothrow))
FREES(_ZdaPvRKSt9nothrow_t, (void *block, ANY), (block, nothrow))
FREES(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
FREES(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
FREES(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
FREES(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))

typedef void (*any_function)(void);

struct function {
    const char *name;
    any_function hook;
    any_function *real;
    bool plain; /* it has no prefix: a name of C++'s */
};

#define FUNCTION(name)                                                                             \
    {                                                                                              \
#name, (any_function)own_##name, (any_function *)&real_##name, false                       \
    }
#define OPERATOR(name) {#name, (any_function)own_##name, (any_function *)&real_##name, true},

static const struct function functions[] = {
    FUNCTION(malloc),         FUNCTION(free),           FUNCTION(calloc),
    FUNCTION(realloc),        FUNCTION(reallocarray),   FUNCTION(cfree),
    FUNCTION(posix_memalign), FUNCTION(aligned_alloc),  FUNCTION(memalign),
    FUNCTION(valloc),         FUNCTION(pvalloc),        FUNCTION(mallocx),
    FUNCTION(rallocx),        FUNCTION(dallocx),        FUNCTION(sdallocx),
    FUNCTION(zalloc),         FUNCTION(malloc_small),   FUNCTION(zalloc_small),
    FUNCTION(malloc_aligned), FUNCTION(zalloc_aligned), FUNCTION(realloc_aligned),
    FUNCTION(free_size),      FUNCTION(free_aligned),   FUNCTION(free_size_aligned),
    HEAP_OPERATORS(OPERATOR)};

#define COUNT (sizeof functions / sizeof *functions)

/* What is called malloc itself comes first: others are other names for it then. */
static const char *const prefixes[] = {"", "je_", "_rjem_", "mi_", "tc_"};
#define PREFIXES (sizeof prefixes / sizeof *prefixes)

struct search {
    struct own_symbol found[PREFIXES][COUNT];
};

static void look(struct search *s, size_t prefix, const char *name, struct own_symbol symbol)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(name, functions[i].name) == 0 && (prefix == 0 || !functions[i].plain))
            s->found[prefix][i] = symbol;
}

static void on_symbol(void *context, const char *name, struct own_symbol symbol)
{
    static const char firsts[] = "mfcrapvdsz"; /* of what stands behind a prefix */
    for (size_t p = 0; p < PREFIXES; p++) {
        size_t len = strlen(prefixes[p]);
        if (strncmp(name, prefixes[p], len) == 0 && name[len] &&
            (strchr(firsts, name[len]) || strncmp(name, "_Zn", 3) == 0 ||
             strncmp(name, "_Zd", 3) == 0))
            look(context, p, name + len, symbol);
    }
}

/* The prefix of an allocator that is whole, or PREFIXES. */
static size_t family_of(const struct search *s)
{
    size_t p = 0;
    while (p < PREFIXES && !(s->found[p][0].address && s->found[p][1].address))
        p++;
    return p;
}

_Static_assert(COUNT <= RANGES_MAX, "every function has a range");

static int hook_all(const struct search *s, size_t family, bool late)
{
    struct detour detours[COUNT];
    size_t of[COUNT], count = 0, failed;
    ranges = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const struct own_symbol *symbol = &s->found[family][i];
        /* C++'s own are the allocator's where those are its only ones. */
        if (!symbol->address && functions[i].plain)
            symbol = &s->found[0][i];
        if (!symbol->address)
            continue;
        range[ranges++] = *symbol;
        of[count] = i;
        detours[count++] = (struct detour){.function = symbol->address,
                                           .size = symbol->size,
                                           .hook = (uint64_t)(uintptr_t)functions[i].hook};
    }
    int result = late ? -EBUSY : detours_make(detours, count, &failed);
    for (size_t k = 0; result == 0 && k < count; k++)
        *functions[of[k]].real = (any_function)(uintptr_t)detours[k].original;
    return result;
}

int heap_own_hook(bool late)
{
    struct search s;
    memset(&s, 0, sizeof s);
    if (own_symbols_read(on_symbol, &s) != 0)
        return 0;
    size_t family = family_of(&s);
    if (family == PREFIXES)
        return 0;
    int result = hook_all(&s, family, late);
    heap_own_active = result == 0;
    return result == 0 ? 1 : result;
}
