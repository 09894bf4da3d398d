/* Finds the interpreter by the names that every build of it exports; see python.h. */
#include <dlfcn.h>
#include <link.h>

#include "agent/python.h"
#include "agent/real.h"

static const char loop[] = "_PyEval_EvalFrameDefault";

static bool symbol(void *handle, const char *name, uint64_t *address)
{
    *address = (uint64_t)(uintptr_t)dlsym(handle, name);
    return *address != 0;
}

static uint64_t end_of(uint64_t function, const char **path)
{
    Dl_info info;
    const ElfW(Sym) *entry = NULL;
    if (!dladdr1((const void *)(uintptr_t)function, &info, (void **)&entry, RTLD_DL_SYMENT) ||
        !entry)
        return function;
    *path = info.dli_fname;
    return function + entry->st_size;
}

bool python_look(void *handle)
{
    struct python_found *f = &agent_python;
    uint64_t address;
    static struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_module module = {.symbol = symbol, .ctx = handle ? handle : RTLD_DEFAULT};
    if (python_is_here())
        return true;
    if (!symbol(module.ctx, loop, &address))
        return false;
    f->eval_end = end_of(address, &module.path);
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    f->fault = cpython_open(&f->py, &module, &memory);
    if (f->fault == CPYTHON_OK)
        __atomic_store_n(&f->ready, 1, __ATOMIC_RELEASE);
    return true;
}
