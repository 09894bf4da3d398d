/*
 * The interposed functions besides signals.c's. Each does its little, then calls the real one; the
 * two whose caller or stack matters (dlopen, syscall) leave by a jump, so this room is compiled
 * with optimisation always.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/fork.h"
#include "agent/heap.h"
#include "agent/modules.h"
#include "agent/publish.h"
#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/real.h"
#include "agent/registry.h"
#include "agent/threads.h"

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *argument)
{
    struct agent_thread *t = NULL;
    if (agent_process) {
        fork_notice();
        modules_refresh();
        uint32_t phase = agent_phase();
        if (agent_quiet)
            registry_refuse();
        else if (phase != AGENT_ABSENT && phase != AGENT_OFF)
            t = threads_reserve(attr, start, argument);
    }
    if (!t)
        return REAL(pthread_create)(thread, attr, start, argument);
    python_thread_coming();
    int result = REAL(pthread_create)(thread, attr, threads_main, t);
    if (result != 0)
        threads_cancel(t);
    python_thread_came();
    return result;
}

/* Whether the object around `address` has a search path of its own; yes, if that is unknown. */
static bool has_runpath(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1 || !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_ld)
        return true;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_RUNPATH || d->d_tag == DT_RPATH)
            return true;
    return false;
}

/* dlopen looks at who called it: tokens such as $ORIGIN and the search path of names without a
 * slash are that object's. (RPATH, the older kind, even reaches down to who it loaded.) */
static bool caller_matters(const char *name, const void *caller)
{
    if (strchr(name, '$'))
        return true;
    return !strchr(name, '/') && (modules_have_rpath() || has_runpath(caller));
}

EXPORT void *dlopen(const char *name, int mode)
{
    if (!name || (!agent_process && !agent_settings.python_awaited))
        return REAL(dlopen)(name, mode);
    if (caller_matters(name, __builtin_return_address(0))) {
        agent_after_load(NULL); /* for what such a call brought before; then a jump, see above */
        return REAL(dlopen)(name, mode);
    }
    void *handle = REAL(dlopen)(name, mode);
    if (handle) {
        agent_after_load(handle);
        dlerror(); /* what we looked for in vain is no failure of the program's */
    }
    return handle;
}

/* After this the kernel may kill us for a system call: make now what needs some, then make none. */
static void before_seccomp(void)
{
    if (!agent_process)
        return;
    if (agent_process->pid && agent_self.tid && agent_self.tid != (int32_t)raw0(SYS_gettid))
        return; /* vfork's child: the filter is its own, the memory is not */
    publish_segment();
    regions_share_all();
    agent_quiet = 1;
    agent_declare(SEGMENT_QUIET);
}

/* <unistd.h> declares it with an ellipsis; seven words in their places are the same call. */
EXPORT long hook_syscall(long, long, long, long, long, long, long) __asm__("syscall");

EXPORT long hook_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (__builtin_expect(number == SYS_seccomp, 0) &&
        (a == SECCOMP_SET_MODE_FILTER || a == SECCOMP_SET_MODE_STRICT))
        before_seccomp();
    return REAL(syscall)(number, a, b, c, d, e, f);
}

EXPORT int prctl(int option, ...)
{
    va_list list;
    va_start(list, option);
    unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long);
    unsigned long c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP)
        before_seccomp();
    long result = raw5(SYS_prctl, option, a, b, c, d);
    if (result >= 0)
        return (int)result;
    errno = (int)-result;
    return -1;
}
