/* Looks up the functions of real.h. */
#include "agent/real.h"

#include <dlfcn.h>

struct real_functions real_functions;

void real_resolve(void)
{
#define REAL_LOOKUP(result, name, parameters)                                                      \
    __extension__ real_functions.name = (result(*) parameters)dlsym(RTLD_NEXT, #name);
    REAL_FUNCTIONS(REAL_LOOKUP)
#undef REAL_LOOKUP
}
