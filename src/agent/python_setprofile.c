/*
 * The program's own sys.setprofile, and from 3.12 on that of all threads. Where calls of C
 * functions are followed the interpreter sends the end of that very call to the hook that it has
 * just set (and to other threads' hooks that of the call which each of them is in), an event which
 * the hook would not get alone and which the standard library's `profile` fails at: it is taken
 * out.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"

#define ON_C_EXCEPTION 5
#define ON_C_RETURN 6
#define ONE_ARGUMENT 8 /* METH_O */
#define THREADS_MAX 512

typedef void *(*setter)(void *self, void *argument);

/* PyMethodDef. */
struct definition {
    const char *name;
    setter function;
    int flags;
};

static void *setprofile(void *self, void *argument);
static void *setprofile_all(void *self, void *argument);

static struct watched {
    const char *name;
    setter ours;
    struct definition *definition; /* NULL: it is as it was */
    setter original;
} one = {"setprofile", setprofile, NULL, NULL},
  all = {"_setprofileallthreads", setprofile_all, NULL, NULL};

static python_profile_hook behind; /* what calls hooks written in Python, the same for all */

static python_profile_hook hook_of(void *thread)
{
    python_profile_hook hook;
    memcpy(&hook, python_hook_at(thread), sizeof hook);
    return hook;
}

static void hook_set(void *thread, python_profile_hook hook)
{
    memcpy(python_hook_at(thread), &hook, sizeof hook);
}

/* In the place of the program's hook until its first event. */
static int on_first(void *object, void *frame, int what, void *argument)
{
    hook_set(python_api.thread_get(), behind);
    if (what == ON_C_RETURN || what == ON_C_EXCEPTION)
        return 0; /* it did not see that call begin */
    return behind(object, frame, what, argument);
}

/* Whether a thread has no hook of the program. */
static bool is_free(void *thread)
{
    python_profile_hook hook = hook_of(thread);
    return hook == python_on_call || (!hook && python_minor >= PYTHON_MONITORING);
}

/* The program's hook has come to a thread that was free. */
static void stand_before(void *thread)
{
    python_profile_hook now = hook_of(thread);
    if (now && now != python_on_call && now != on_first) {
        behind = now;
        hook_set(thread, on_first);
    }
}

static void *setprofile(void *self, void *argument)
{
    void *thread = python_api.thread_get();
    bool free = is_free(thread);
    void *result = one.original(self, argument);
    if (result && free)
        stand_before(thread);
    return result;
}

static bool is_among(void *const *threads, size_t count, const void *thread)
{
    for (size_t i = 0; i < count; i++)
        if (threads[i] == thread)
            return true;
    return false;
}

static void *setprofile_all(void *self, void *argument)
{
    void *free[THREADS_MAX], *interpreter = python_interpreter();
    size_t count = 0;
    for (void *t = python_api.thread_head(interpreter); t; t = python_api.thread_next(t))
        if (count < THREADS_MAX && is_free(t))
            free[count++] = t;
    void *result = all.original(self, argument);
    for (void *t = python_api.thread_head(interpreter); t && result; t = python_api.thread_next(t))
        if (is_among(free, count, t))
            stand_before(t);
    return result;
}

static void watch(struct watched *w)
{
    uint64_t function = (uint64_t)(uintptr_t)python_api.sys_object(w->name);
    if (w->definition || !function ||
        (void *)(uintptr_t)PYTHON_WORD(function, LAYOUT_TYPE) != python_api.builtin_type)
        return;
    uint64_t at = PYTHON_WORD(function, PYTHON_FUNCTION_DEFINITION);
    struct definition *found = (struct definition *)(uintptr_t)at;
    if (found->flags != ONE_ARGUMENT)
        return;
    w->original = found->function;
    w->definition = found;
    found->function = w->ours;
}

static void leave(struct watched *w)
{
    if (w->definition && w->definition->function == w->ours)
        w->definition->function = w->original;
    w->definition = NULL;
}

void python_setprofile_watch(void)
{
    if (!python_hook_at(python_api.thread_get()))
        return;
    watch(&one);
    if (python_api.thread_head && python_api.thread_next)
        watch(&all);
}

void python_setprofile_leave(void)
{
    leave(&one);
    leave(&all);
}
