/*
 * Calls by sys.monitoring, from CPython 3.12 on: all threads of the interpreter at once, and
 * nothing that the program could see through sys.getprofile. A tool's number of our own leaves
 * those of debuggers, coverage and other profilers alone.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"

#define FASTCALL 0x80 /* METH_FASTCALL */

/* PyMethodDef. */
struct definition {
    const char *name;
    void *(*function)(void *self, void *const *arguments, int64_t count);
    int flags;
    const char *doc;
};

static int tool = -1;
static void *missing;

static void *on_enter(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_thread *t = trace_self();
    if (__builtin_expect(t != NULL, 1)) {
        struct trace_entry *e = python_code_entry((uint64_t)(uintptr_t)arguments[0]);
        if (trace_enters(t, e))
            trace_put(t, TRACE_ENTER, e->id);
    }
    return python_api.none; /* immortal from 3.12 on */
}

static void *on_leave(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_thread *t = trace_self();
    if (__builtin_expect(t != NULL, 1)) {
        struct trace_entry *e = python_code_entry((uint64_t)(uintptr_t)arguments[0]);
        if (trace_leaves(t, e))
            trace_put(t, TRACE_LEAVE, e->id);
    }
    return python_api.none;
}

/* The C function that is called, or NULL: calls of Python's functions come as calls as well. */
static inline struct trace_entry *callee(void *const *arguments)
{
    uint64_t function = (uint64_t)(uintptr_t)arguments[2];
    void *type = (void *)(uintptr_t)PYTHON_WORD(function, LAYOUT_TYPE);
    bool descriptor = type == python_api.descriptor_type;
    if (!descriptor && type != python_api.builtin_type && type != python_api.method_type)
        return NULL;
    if (descriptor && arguments[3] == missing)
        return NULL;
    uint64_t definition = PYTHON_WORD(function, descriptor ? PYTHON_DESCRIPTOR_DEFINITION
                                                           : PYTHON_FUNCTION_DEFINITION);
    struct trace_entry *e = trace_find(definition);
    return __builtin_expect(e != NULL, 1) ? e
                                          : python_name_builtin(definition, function, descriptor);
}

static inline bool is_left_out(void *const *arguments)
{
    return __builtin_expect(trace_hiding, 0) &&
           python_code_entry((uint64_t)(uintptr_t)arguments[0])->hidden;
}

static void *on_c_call(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_entry *e = callee(arguments);
    struct trace_thread *t = e ? trace_self() : NULL;
    if (t && !is_left_out(arguments) && trace_enters(t, e))
        trace_put(t, TRACE_ENTER, e->id);
    return python_api.none;
}

static void *on_c_return(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_entry *e = callee(arguments);
    struct trace_thread *t = e ? trace_self() : NULL;
    if (t && !is_left_out(arguments) && trace_leaves(t, e))
        trace_put(t, TRACE_LEAVE, e->id);
    return python_api.none;
}

static struct definition on_enter_def = {"sonde_enter", on_enter, FASTCALL, NULL},
                         on_leave_def = {"sonde_leave", on_leave, FASTCALL, NULL},
                         on_c_call_def = {"sonde_c_call", on_c_call, FASTCALL, NULL},
                         on_c_return_def = {"sonde_c_return", on_c_return, FASTCALL, NULL};

static const struct {
    const char *event;
    struct definition *definition;
    bool builtin;
} events[] = {
    {"PY_START", &on_enter_def, false},  {"PY_RESUME", &on_enter_def, false},
    {"PY_THROW", &on_enter_def, false},  {"PY_RETURN", &on_leave_def, false},
    {"PY_YIELD", &on_leave_def, false},  {"PY_UNWIND", &on_leave_def, false},
    {"CALL", &on_c_call_def, true},      {"C_RETURN", &on_c_return_def, true},
    {"C_RAISE", &on_c_return_def, true},
};

static bool call(void *result)
{
    if (result)
        python_api.release(result);
    else
        python_api.error_clear();
    return result != NULL;
}

static long number(void *object, const char *name)
{
    void *value = python_api.attribute(object, name);
    long n = value ? python_api.as_long(value) : 0;
    call(value);
    return n;
}

/* Calls come to ours at once, not through the interpreter's function for all of this kind, whose
 * care for arguments and recursion is not needed here: it would take as long as ours does. The
 * signatures agree in what is used. Only where the object looks as it does in all versions. */
static void shorten(void *function, const struct definition *d)
{
    uint64_t at = (uint64_t)(uintptr_t)function;
    if (PYTHON_WORD(at, PYTHON_FUNCTION_DEFINITION) != (uint64_t)(uintptr_t)d ||
        PYTHON_WORD(at, PYTHON_FUNCTION_WEAK) || !PYTHON_WORD(at, PYTHON_FUNCTION_VECTORCALL))
        return;
    memcpy((char *)function + PYTHON_FUNCTION_VECTORCALL, &d->function, sizeof d->function);
}

/* A tool's number that nobody has. */
static bool tool_take(void *monitoring)
{
    static const int choices[] = {4, 3, 5};
    for (size_t i = 0; i < sizeof choices / sizeof *choices && tool < 0; i++)
        if (call(python_api.call_method(monitoring, "use_tool_id", "is", choices[i], "sonde")))
            tool = choices[i];
    return tool >= 0;
}

bool python_monitor_set(void)
{
    const struct python_api *api = &python_api;
    void *monitoring = api->sys_object("monitoring");
    void *names = monitoring ? api->attribute(monitoring, "events") : NULL;
    if (!names || (tool < 0 && !tool_take(monitoring))) {
        call(names);
        return false;
    }
    long all = 0;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (events[i].builtin && !trace_settings.builtins)
            continue;
        long event = number(names, events[i].event);
        void *function = api->new_function(events[i].definition, NULL, NULL);
        if (function)
            shorten(function, events[i].definition);
        if (function &&
            call(api->call_method(monitoring, "register_callback", "ilO", tool, event, function)))
            all |= event;
        call(function);
    }
    missing = api->attribute(monitoring, "MISSING");
    bool set = call(api->call_method(monitoring, "set_events", "il", tool, all));
    call(names);
    return set;
}

void python_monitor_unset(void)
{
    void *monitoring = tool >= 0 ? python_api.sys_object("monitoring") : NULL;
    if (monitoring)
        call(python_api.call_method(monitoring, "set_events", "ii", tool, 0));
}
