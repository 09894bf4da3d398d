/*
 * Calls of programs built with -finstrument-functions: the compiler has every function call these
 * two, which libc otherwise does nothing in. Such a program may run long before anything else asks
 * for the agent, so the first call begins it.
 */
#include "agent/real.h"
#include "agent/trace.h"

#define UNINSTRUMENTED __attribute__((no_instrument_function))

EXPORT UNINSTRUMENTED void __cyg_profile_func_enter(void *function, void *site);
EXPORT UNINSTRUMENTED void __cyg_profile_func_exit(void *function, void *site);

/* A signal handler may be instrumented, too: what interrupts a word being written is lost. */
static __thread bool busy __attribute__((tls_model("initial-exec")));

static bool is_wanted(void)
{
    return trace_settings.calls && (trace_process || agent_begin_late());
}

static void put(enum trace_word word, uint64_t function)
{
    struct trace_thread *t;
    if (!is_wanted() || busy)
        return;
    busy = true;
    if ((t = trace_self())) {
        struct trace_entry *e = trace_find(function);
        if (!e)
            e = trace_name(function,
                           &(struct trace_text){.kind = TRACE_NAME_NATIVE, .address = function});
        if (word == TRACE_ENTER ? trace_enters(t, e) : trace_leaves(t, e))
            trace_put(t, word, e->id);
    }
    busy = false;
}

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    put(TRACE_ENTER, (uint64_t)(uintptr_t)function);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)site;
    put(TRACE_LEAVE, (uint64_t)(uintptr_t)function);
}
