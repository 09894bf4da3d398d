/*
 * Libraries that are loaded when they are first called.
 *
 * Few runs of sonde speak to a server, yet libcurl and OpenSSL, with all that they draw in, take
 * the loader 10 ms at every start: more than all the rest of a short command. late/ defines each
 * function of theirs that sonde calls, under its own name: its first call loads the library, and
 * every call goes on to the real one. Their callers include their headers and notice nothing. The
 * definitions are hidden, so that the libraries themselves never meet them.
 */
#ifndef SONDE_BASE_LATE_H
#define SONDE_BASE_LATE_H

#include <stdatomic.h>

struct late_library {
    const char *name; /* as the loader looks for it */
    _Atomic(void *) handle;
};

/*
 * The function `name` of the library, kept in `slot`. Any thread may call it. If the library is not
 * there, or is too old to have it, the handler is told, which must not return; without one,
 * abort().
 */
void *late_find(struct late_library *library, _Atomic(void *) *slot, const char *name);

void late_set_handler(void (*handler)(const char *library, const char *why));

/* int f(int a) of `library` is LATE(library, int, f, (int a), (a)) */
#define LATE(library, type, name, parameters, arguments)                                           \
    type(name) parameters                                                                          \
    {                                                                                              \
        static _Atomic(void *) slot;                                                               \
        __typeof__(&(name)) real = (__typeof__(&(name)))late_find(&(library), &slot, #name);       \
        return real arguments;                                                                     \
    }

#endif
