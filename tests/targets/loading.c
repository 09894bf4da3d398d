/*
 * T21. loading LIBRARY: loads it, and one that is not there; says what dlerror says before, between
 * and after.
 */
#include <dlfcn.h>

#include "work.h"

static const char *error(void)
{
    const char *text = dlerror();
    return text ? text : "no error";
}

int main(int argc, char **argv)
{
    must(argc > 1, "loading LIBRARY");
    printf("at the start: %s\n", error());
    void *there = dlopen(argv[1], RTLD_NOW);
    printf("loaded: %d, %s\n", there != NULL, error());
    void *absent = dlopen("/nowhere/absent.so", RTLD_NOW);
    printf("loaded: %d, %s\n", absent != NULL, error());
    return 0;
}
