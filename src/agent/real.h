/*
 * The functions that the agent stands in front of. REAL(name) is the next one in the program's
 * order of libraries, looked up in the constructor, or at the first call if that came before.
 */
#ifndef SONDE_AGENT_REAL_H
#define SONDE_AGENT_REAL_H

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

#define REAL_FUNCTIONS(X)                                                                          \
    X(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))       \
    X(void *, dlopen, (const char *, int))                                                         \
    X(long, syscall, (long, long, long, long, long, long, long))                                   \
    X(sighandler_t, signal, (int, sighandler_t))                                                   \
    X(int, sigaction, (int, const struct sigaction *, struct sigaction *))                         \
    X(int, pthread_sigmask, (int, const sigset_t *, sigset_t *))                                   \
    X(int, execve, (const char *, char *const *, char *const *))                                   \
    X(int, execvpe, (const char *, char *const *, char *const *))                                  \
    X(int, fexecve, (int, char *const *, char *const *))                                           \
    X(int, execveat, (int, const char *, char *const *, char *const *, int))                       \
    X(int, sigwait, (const sigset_t *, int *))                                                     \
    X(int, sigwaitinfo, (const sigset_t *, siginfo_t *))                                           \
    X(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *))                 \
    X(int, signalfd, (int, const sigset_t *, int))                                                 \
    X(void *, mmap, (void *, size_t, int, int, int, off_t))                                        \
    X(void *, mmap64, (void *, size_t, int, int, int, off_t))                                      \
    X(int, munmap, (void *, size_t))                                                               \
    X(void *, mremap, (void *, size_t, size_t, int, void *))                                       \
    X(int, brk, (void *))                                                                          \
    X(void *, sbrk, (intptr_t))

struct real_functions {
#define REAL_MEMBER(result, name, parameters) result(*name) parameters;
    REAL_FUNCTIONS(REAL_MEMBER)
#undef REAL_MEMBER
};

extern struct real_functions real_functions;
void real_resolve(void);

/* For an agent that was brought in, whose hooks stand in the tables of others: what the program's
 * order of libraries has for the name, never a way that leads through such a table. */
void *real_defined(const char *name);
bool real_is_way(const void *address);

#define REAL(name)                                                                                 \
    (__builtin_expect(!real_functions.name, 0) ? real_resolve() : (void)0, real_functions.name)

/*
 * What glibc alone has. Weak, so that a program with another libc (musl) starts as if we were not
 * there: with such a one the agent stays inert, and its hooks only pass on.
 */
#define OF_GLIBC __attribute__((weak))
/* The name of sigaction that nobody interposes. */
OF_GLIBC int __sigaction(int signal, const struct sigaction *act, struct sigaction *old);
OF_GLIBC int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                               void *library);
OF_GLIBC int dladdr1(const void *address, Dl_info *info, void **more, int flags);
OF_GLIBC const char *gnu_get_libc_version(void);

#endif
