/*
 * Calls of programs built with -finstrument-functions: the compiler has every function call the
 * first two, which libc otherwise does nothing in. Such a program may run long before anything else
 * asks for the agent, so the first call begins it.
 */
#include "agent/native_calls.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/publish.h"
#include "agent/real.h"

#define UNINSTRUMENTED __attribute__((no_instrument_function))

EXPORT UNINSTRUMENTED void __cyg_profile_func_enter(void *function, void *site);
EXPORT UNINSTRUMENTED void __cyg_profile_func_exit(void *function, void *site);

__thread bool native_busy __attribute__((tls_model("initial-exec")));
uint64_t native_real_mcount, native_real_fentry; /* 0: there is none */
bool native_real_known;

static bool is_wanted(void)
{
    return trace_settings.calls && (trace_process || agent_begin_late());
}

static struct trace_entry *entry_of(uint64_t function)
{
    struct trace_entry *e = trace_find(function);
    return e ? e
             : trace_name(function,
                          &(struct trace_text){.kind = TRACE_NAME_NATIVE, .address = function});
}

static void put(enum trace_word word, uint64_t function)
{
    struct trace_thread *t;
    if (!is_wanted() || native_busy)
        return;
    native_busy = true;
    if ((t = trace_self())) {
        struct trace_entry *e = entry_of(function);
        if (word == TRACE_ENTER ? trace_enters(t, e) : trace_leaves(t, e))
            trace_put(t, word, e->id);
    }
    native_busy = false;
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

/* Looked for at the first call: a program that is not built with -pg never comes here. */
static void real_find(void)
{
    void *mcount = dlsym(RTLD_NEXT, "mcount"), *fentry = dlsym(RTLD_NEXT, "__fentry__");
    memcpy(&native_real_mcount, &mcount, sizeof mcount);
    memcpy(&native_real_fentry, &fentry, sizeof fentry);
    native_real_known = true;
}

/* In pages that a child after fork finds empty: what is open there it will never see end. */
static bool stack_make(struct trace_thread *t)
{
    if (!t->native)
        t->native = publish_map_wiped((sizeof *t->native + 4095) & ~4095ul);
    return t->native != NULL;
}

void native_begins_rarely(uint64_t function, uint64_t slot)
{
    struct trace_thread *t;
    if (!native_real_known)
        real_find();
    if (!is_wanted() || native_busy)
        return;
    native_busy = true;
    if ((t = trace_self()) && stack_make(t) && slot >= agent_self.stack_low &&
        slot < agent_self.stack_end)
        native_step(t, entry_of(function)->id, slot, native_ended(t->native, slot));
    native_busy = false;
}
