/*
 * The program's own sys.setprofile. Where calls of C functions are followed the interpreter sends
 * the end of that very call to the hook that it has just set, an event which the hook would not get
 * alone and which the standard library's `profile` fails at: it is taken out.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"

#define ON_C_RETURN 6
#define ONE_ARGUMENT 8 /* METH_O */

/* PyMethodDef. */
struct definition {
    const char *name;
    void *(*function)(void *self, void *argument);
    int flags;
};

static struct definition *definition; /* sys.setprofile's; NULL: it is as it was */
static void *(*original)(void *self, void *argument);
static python_profile_hook behind; /* what calls hooks written in Python, the same for all */

static python_profile_hook hook_of(void)
{
    python_profile_hook hook;
    memcpy(&hook, python_hook_at(python_api.thread_get()), sizeof hook);
    return hook;
}

static void hook_set(python_profile_hook hook)
{
    memcpy(python_hook_at(python_api.thread_get()), &hook, sizeof hook);
}

/* In the place of the program's hook until its first event. */
static int on_first(void *object, void *frame, int what, void *argument)
{
    hook_set(behind);
    if (what == ON_C_RETURN &&
        PYTHON_WORD(argument, PYTHON_FUNCTION_DEFINITION) == (uint64_t)(uintptr_t)definition)
        return 0;
    return behind(object, frame, what, argument);
}

static void *setprofile(void *self, void *argument)
{
    python_profile_hook before = hook_of();
    void *result = original(self, argument);
    bool unseen = before == python_on_call || (!before && python_minor >= PYTHON_MONITORING);
    python_profile_hook now = result && unseen ? hook_of() : NULL;
    if (now && now != python_on_call && now != on_first) {
        behind = now;
        hook_set(on_first);
    }
    return result;
}

void python_setprofile_watch(void)
{
    uint64_t function = (uint64_t)(uintptr_t)python_api.sys_object("setprofile");
    if (definition || !function || !python_hook_at(python_api.thread_get()) ||
        (void *)(uintptr_t)PYTHON_WORD(function, LAYOUT_TYPE) != python_api.builtin_type)
        return;
    uint64_t at = PYTHON_WORD(function, PYTHON_FUNCTION_DEFINITION);
    struct definition *found = (struct definition *)(uintptr_t)at;
    if (found->flags != ONE_ARGUMENT)
        return;
    original = found->function;
    definition = found;
    found->function = setprofile;
}

void python_setprofile_leave(void)
{
    if (definition && definition->function == setprofile)
        definition->function = original;
    definition = NULL;
}
