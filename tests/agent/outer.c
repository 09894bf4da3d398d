/* A library with a search path of its own; see runpath.c. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

uint64_t outer_work(uint64_t units);

uint64_t outer_work(uint64_t units)
{
    void *inner = dlopen("libhidden.so", RTLD_NOW);
    if (!inner) {
        printf("%s\n", dlerror());
        return 0;
    }
    uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)dlsym(inner, "hidden_work");
    return run(units) + 1;
}
