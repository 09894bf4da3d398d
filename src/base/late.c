/* Finding a function in a library that may not be loaded yet; see late.h. */
#include "base/late.h"

#include <dlfcn.h>
#include <stdlib.h>

static void (*on_missing)(const char *library, const char *why);

void late_set_handler(void (*handler)(const char *library, const char *why))
{
    on_missing = handler;
}

static _Noreturn void give_up(const struct late_library *library)
{
    const char *why = dlerror();
    if (on_missing)
        on_missing(library->name, why ? why : "unknown");
    abort();
}

void *late_find(struct late_library *library, _Atomic(void *) *slot, const char *name)
{
    void *found = atomic_load_explicit(slot, memory_order_acquire);
    if (found)
        return found;
    void *handle = atomic_load(&library->handle);
    if (!handle) {
        handle = dlopen(library->name, RTLD_LAZY | RTLD_LOCAL);
        if (!handle)
            give_up(library);
        atomic_store(&library->handle, handle);
    }
    found = dlsym(handle, name);
    if (!found)
        give_up(library);
    atomic_store_explicit(slot, found, memory_order_release);
    return found;
}
