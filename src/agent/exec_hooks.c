/*
 * The interposed exec functions. An exec keeps pending signals but not their handlers: a sample
 * that came due on the way would end the next program. (Timers need no care: the kernel takes
 * theirs away itself.)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/clock.h"
#include "agent/limit_hooks.h"
#include "agent/real.h"

extern char **environ;

#define LEAVING(call)                                                                              \
    do {                                                                                           \
        if (!agent_process)                                                                        \
            return call;                                                                           \
        clock_pause();                                                                             \
        limits_give_back();                                                                        \
        int result = call;                                                                         \
        limits_take_again();                                                                       \
        clock_resume();                                                                            \
        return result;                                                                             \
    } while (0)

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    LEAVING(REAL(execve)(path, argv, envp));
}

EXPORT int execv(const char *path, char *const argv[])
{
    LEAVING(REAL(execve)(path, argv, environ));
}

EXPORT int execvp(const char *file, char *const argv[])
{
    LEAVING(REAL(execvpe)(file, argv, environ));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    LEAVING(REAL(execvpe)(file, argv, envp));
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    LEAVING(REAL(fexecve)(fd, argv, envp));
}

EXPORT int execveat(int folder, const char *path, char *const argv[], char *const envp[], int flags)
{
    LEAVING(REAL(execveat)(folder, path, argv, envp, flags));
}

/* How many arguments there are, the final NULL among them. */
static size_t list_count(va_list list)
{
    size_t count = 2;
    while (va_arg(list, char *))
        count++;
    return count;
}

static void list_take(const char **argv, const char *first, va_list list, size_t count)
{
    argv[0] = first;
    for (size_t i = 1; i < count; i++)
        argv[i] = va_arg(list, char *);
}

#define LIST_ARGUMENTS(argv, first)                                                                \
    va_list list;                                                                                  \
    va_start(list, first);                                                                         \
    size_t count = list_count(list);                                                               \
    va_end(list);                                                                                  \
    const char **argv = __builtin_alloca(count * sizeof *argv);                                    \
    va_start(list, first);                                                                         \
    list_take(argv, first, list, count)

EXPORT int execl(const char *path, const char *first, ...)
{
    LIST_ARGUMENTS(argv, first);
    va_end(list);
    return execve(path, (char *const *)(uintptr_t)argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    LIST_ARGUMENTS(argv, first);
    va_end(list);
    return execvpe(file, (char *const *)(uintptr_t)argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    LIST_ARGUMENTS(argv, first);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, (char *const *)(uintptr_t)argv, envp);
}
