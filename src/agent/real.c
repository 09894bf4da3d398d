/* Looks up the functions of real.h. */
#include "agent/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

struct real_functions real_functions;

void real_resolve(void)
{
#define REAL_LOOKUP(result, name, parameters)                                                      \
    __extension__ real_functions.name = (result(*) parameters)dlsym(RTLD_NEXT, #name);
    REAL_FUNCTIONS(REAL_LOOKUP)
#undef REAL_LOOKUP
}

/* In a program that is bound to its addresses, the one of a function may be its own way to it,
 * through its table: a symbol that has an address and is not defined. */
bool real_is_way(const void *address)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1 && dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
           symbol->st_shndx == SHN_UNDEF;
}

void *real_defined(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    struct link_map *own = NULL, *m;
    if (!found || !real_is_way(found) ||
        !dladdr1(&real_functions, &info, (void **)&own, RTLD_DL_LINKMAP) || !own)
        return found;
    for (m = own; m->l_prev;)
        m = m->l_prev;
    for (found = NULL; m && !found; m = m->l_next) {
        void *library =
            m != own && m->l_name[0] ? REAL(dlopen)(m->l_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (!library)
            continue;
        found = dlsym(library, name);
        dlclose(library);
    }
    dlerror();
    return found;
}
