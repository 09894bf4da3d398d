/* Who asked the allocator: takes the allocator's own frames from the inner end of stacks. */
#include <string.h>

#include "analyze/heap.h"
#include "base/memory.h"

#include <stdlib.h>

/* libc, glib, CPython, Redis, OpenSSL, and the wrapper that half of all programs have. */
static const char *const names[] = {
    "malloc",           "calloc",           "realloc",
    "reallocarray",     "posix_memalign",   "aligned_alloc",
    "memalign",         "valloc",           "pvalloc",
    "strdup",           "zmalloc",          "zcalloc",
    "zcalloc_num",      "zrealloc",         "ztrymalloc",
    "zmalloc_usable",   "zrealloc_usable",  "CRYPTO_malloc",
    "CRYPTO_zalloc",    "CRYPTO_realloc",   "strndup",
    "wcsdup",           "__strdup",         "__strndup",
    "__libc_malloc",    "__libc_calloc",    "__libc_realloc",
    "g_malloc",         "g_malloc0",        "g_malloc_n",
    "g_malloc0_n",      "g_realloc",        "g_realloc_n",
    "g_strdup",         "g_slice_alloc",    "xmalloc",
    "xcalloc",          "xrealloc",         "xstrdup",
    "PyMem_Malloc",     "PyMem_Calloc",     "PyMem_Realloc",
    "PyMem_RawMalloc",  "PyMem_RawCalloc",  "PyMem_RawRealloc",
    "PyObject_Malloc",  "PyObject_Calloc",  "PyObject_Realloc",
    "_PyMem_RawMalloc", "_PyMem_RawCalloc", "_PyMem_RawRealloc",
    "_PyObject_Malloc", "_PyObject_Calloc", "_PyObject_Realloc",
    "_PyObject_Alloc",
};

static const char *const starts[] = {"operator new",
                                     "std::allocator<",
                                     "std::__new_allocator<",
                                     "__gnu_cxx::new_allocator<",
                                     "std::allocator_traits<",
                                     "std::__1::allocator<",
                                     "std::__1::allocator_traits<"};

/* Parts of containers' names that do nothing but ask. */
static const char *const parts[] = {"::_M_allocate(", "::_M_create(", "::_M_get_node(",
                                    "::_M_allocate_map(", "::_M_allocate_node("};

bool heap_is_allocator(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (text_starts(name, starts[i]))
            return true;
    for (size_t i = 0; text_starts(name, "std::") && i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

/* Leaves out the allocator's functions that were inlined at the inner end; false if nothing is
 * left. */
static bool trim_frame(struct profile *p, uint32_t frame, const bool *allocator)
{
    struct profile_frame *f = &p->frames.data[frame];
    uint32_t skip = 0;
    while (skip < f->location_count &&
           allocator[p->locations.data[f->first_location + skip].function])
        skip++;
    if (skip && skip == f->location_count)
        return false;
    f->first_location += skip;
    f->location_count -= skip;
    return true;
}

static uint32_t trim_stack(struct profile *p, uint32_t stack, const bool *allocator)
{
    uint32_t at = stack;
    while (at && !trim_frame(p, p->stacks.data[at].frame, allocator))
        at = p->stacks.data[at].parent;
    return at ? at : stack;
}

void heap_skip_allocators(struct profile *p)
{
    bool *allocator = memory_array(p->functions.len + 1, sizeof *allocator);
    bool *heap = memory_array(p->events.len + 1, sizeof *heap);
    for (size_t i = 0; i < p->functions.len; i++)
        allocator[i] = heap_is_allocator(profile_text(p, p->functions.data[i].name));
    for (size_t i = 0; i < p->events.len; i++)
        heap[i] = text_starts(profile_text(p, p->events.data[i].name), "heap:");
    for (size_t i = 0; i < p->cells.len; i++)
        if (heap[p->cells.data[i].event])
            p->cells.data[i].stack = trim_stack(p, p->cells.data[i].stack, allocator);
    for (size_t i = 0; i < p->details.len; i++)
        p->details.data[i].stack = trim_stack(p, p->details.data[i].stack, allocator);
    free(allocator);
    free(heap);
}
