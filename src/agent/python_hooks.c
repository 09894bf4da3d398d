/* Finds the interpreter's functions and sets the hooks at the right moments; see python_hooks.h. */
#include "agent/python_hooks.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "agent/python.h"
#include "agent/python_lines.h"

struct python_api python_api;
unsigned python_minor;
uint32_t python_threads_coming;

/* Set while we change a hook ourselves: that is audited like the program's own doing. */
static bool setting;
static bool is_set;
static void *hooked_interpreter; /* of the thread that set them */
static __thread bool begins_thread __attribute__((tls_model("initial-exec")));

#define AUDIT_SEARCH 16384 /* bytes of the runtime's state */
#define ADDRESS_END (1ull << 47)

static const struct {
    const char *name;
    size_t offset;
    unsigned from, to; /* minor versions that must have it */
} functions[] = {
#define API(member, name, from, to)                                                                \
    {                                                                                              \
        name, offsetof(struct python_api, member), from, to                                        \
    }
    API(add_audit_hook, "PySys_AddAuditHook", 8, 99),
    API(set_profile, "PyEval_SetProfile", 8, 11),
    API(set_trace, "PyEval_SetTrace", 8, 11),
    API(thread_head, "PyInterpreterState_ThreadHead", 8, 11),
    API(thread_next, "PyThreadState_Next", 8, 11),
    API(thread_get, "PyThreadState_Get", 8, 99),
    API(add_pending, "Py_AddPendingCall", 8, 99),
    API(error_clear, "PyErr_Clear", 8, 99),
    API(is_initialized, "Py_IsInitialized", 8, 99),
    API(none, "_Py_NoneStruct", 8, 99),
    API(sys_object, "PySys_GetObject", 8, 99),
    API(attribute, "PyObject_GetAttrString", 8, 99),
    API(call_method, "PyObject_CallMethod", 8, 99),
    API(call_object, "PyObject_CallObject", 8, 99),
    API(as_long, "PyLong_AsLong", 8, 99),
    API(new_function, "PyCFunction_NewEx", 8, 99),
    API(release, "Py_DecRef", 8, 99),
    API(retain, "Py_IncRef", 8, 99),
    API(builtin_type, "PyCFunction_Type", 8, 99),
    API(descriptor_type, "PyMethodDescr_Type", 8, 99),
    API(method_type, "PyCMethod_Type", 9, 99),
    API(line_of, "PyCode_Addr2Line", 8, 99),
    API(import, "PyImport_ImportModule", 8, 99),
    API(set_attribute, "PyObject_SetAttrString", 8, 99),
    API(eval_default, "_PyEval_EvalFrameDefault", 8, 99),
    API(set_eval, "_PyInterpreterState_SetEvalFrameFunc", 9, 11),
    API(get_eval, "_PyInterpreterState_GetEvalFrameFunc", 9, 11),
    API(compile, "Py_CompileString", 11, 11),
    API(eval_code, "PyEval_EvalCode", 11, 11),
    API(new_dict, "PyDict_New", 11, 11),
#undef API
};

static void *library; /* the interpreter's, or NULL: the program itself */

void *python_find(const char *name)
{
    return dlsym(library ? library : RTLD_DEFAULT, name);
}

static bool resolve(void *handle)
{
    library = handle;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = python_find(functions[i].name);
        if (!address && python_minor >= functions[i].from && python_minor <= functions[i].to)
            return false;
        memcpy((char *)&python_api + functions[i].offset, &address, sizeof address);
    }
    return true;
}

/* Where a PyThreadState has its hook; from 3.12 on that is the program's alone. */
struct hook_layout {
    uint32_t function, object;
    uint32_t flag;   /* in the thread, or ... */
    uint32_t cframe; /* ... in what this points to; 0: in the thread */
    uint32_t flag_size;
    uint32_t on;
};

static const struct hook_layout hook_layouts[] = {
    [8] = {56, 72, 48, 0, 4, 1},    [9] = {56, 72, 48, 0, 4, 1}, [10] = {56, 72, 0, 48, 4, 1},
    [11] = {64, 80, 0, 56, 1, 255}, [12] = {.function = 64},     [13] = {.function = 80},
};

void *python_hook_at(void *thread)
{
    bool known = python_minor < sizeof hook_layouts / sizeof *hook_layouts;
    return known ? (char *)thread + hook_layouts[python_minor].function : NULL;
}

void *python_trace_hook_at(void *thread)
{
    char *at = python_hook_at(thread);
    return at ? at + sizeof(python_profile_hook) : NULL;
}

static void *hook_of(const struct hook_layout *l, void *thread)
{
    void *function;
    memcpy(&function, (char *)thread + l->function, sizeof function);
    return function;
}

bool python_hook_is_ours(void *thread)
{
    python_profile_hook hook;
    memcpy(&hook, python_hook_at(thread), sizeof hook);
    return hook == python_on_call;
}

static char *flag_of(const struct hook_layout *l, void *thread)
{
    char *flag = (char *)thread + l->flag;
    if (l->cframe)
        memcpy(&flag, (char *)thread + l->cframe, sizeof flag);
    return flag;
}

uint8_t *python_flag_at(void *thread)
{
    return (uint8_t *)flag_of(&hook_layouts[python_minor], thread);
}

static void hook_thread(const struct hook_layout *l, void *thread)
{
    python_profile_hook hook = python_on_call;
    char *flag = flag_of(l, thread);
    if (!flag)
        return;
    memset((char *)thread + l->object, 0, sizeof(void *));
    memcpy((char *)thread + l->function, &hook, sizeof hook);
    memcpy(flag, &l->on, l->flag_size);
}

bool python_hook_set(void *thread)
{
    if (hook_of(&hook_layouts[python_minor], thread))
        return false;
    hook_thread(&hook_layouts[python_minor], thread);
    return true;
}

/* Whether each thread must have the profile hook. */
static bool by_thread(void)
{
    return is_set && python_minor < PYTHON_MONITORING && trace_settings.calls &&
           trace_settings.builtins && !python_builtins_are_seen();
}

void *python_interpreter(void)
{
    void *interpreter;
    memcpy(&interpreter, (char *)python_api.thread_get() + agent_python.py.layout.thread_interp,
           sizeof interpreter);
    return interpreter;
}

void python_hook_own(void *thread)
{
    if (by_thread() && !hook_of(&hook_layouts[python_minor], thread))
        hook_thread(&hook_layouts[python_minor], thread);
}

void python_thread_came(void)
{
    python_threads_coming = 1;
}

void python_thread_coming(void)
{
    if (by_thread() && !begins_thread) {
        if (!python_frames_watch(hooked_interpreter))
            trace_declare(TRACE_THREADS_UNSEEN);
    }
    begins_thread = false;
}

void python_hook_threads(void)
{
    python_threads_coming = 0;
    if (!by_thread())
        return;
    const struct hook_layout *l = &hook_layouts[python_minor];
    void *interpreter = python_interpreter();
    for (void *t = python_api.thread_head(interpreter); t; t = python_api.thread_next(t))
        if (!hook_of(l, t))
            hook_thread(l, t);
}

static bool profile_set(void)
{
    setting = true;
    python_api.set_profile(python_on_call, NULL);
    setting = false;
    return python_hook_is_ours(python_api.thread_get());
}

/* Without the profile hook, where that can be. */
static bool frames_set(void)
{
    if (trace_settings.builtins && !python_builtins_set())
        return false;
    if (python_frames_set(true))
        return true;
    python_builtins_leave();
    return false;
}

bool python_hooks_set(void)
{
    if (is_set)
        return true;
    python_names_init();
    is_set = true;
    hooked_interpreter = python_interpreter();
    if (trace_settings.lines)
        python_lines_set();
    if (!trace_settings.calls)
        return true;
    if (python_minor >= PYTHON_MONITORING)
        is_set = python_monitor_set();
    else
        is_set = frames_set() || (trace_settings.builtins && profile_set());
    if (is_set && trace_settings.builtins && !python_builtins_are_seen())
        python_setprofile_watch();
    if (is_set)
        python_hook_threads();
    else if (trace_self())
        trace_declare(TRACE_HOOK_REFUSED);
    return is_set;
}

bool python_hooks_trace(void)
{
    return is_set && trace_settings.calls;
}

void python_hooks_unset(void)
{
    if (!is_set)
        return;
    is_set = false;
    python_setprofile_leave();
    if (python_minor >= PYTHON_MONITORING) {
        python_monitor_unset();
        return;
    }
    bool seen = python_builtins_are_seen();
    python_builtins_leave();
    python_frames_set(false);
    if (!trace_settings.builtins || seen)
        return;
    const struct hook_layout *l = &hook_layouts[python_minor];
    void *self = python_api.thread_get(), *interpreter = python_interpreter();
    setting = true;
    python_api.set_profile(NULL, NULL);
    setting = false;
    /* The others find the hook gone when they come to it: it looks at `is_set`. */
    for (void *t = python_api.thread_head(interpreter); t; t = python_api.thread_next(t))
        if (t != self)
            memset((char *)t + l->function, 0, sizeof(void *));
}

/* The program has taken its own hook away, or another thread's is still there: ours again. */
static int give_back(void *unused)
{
    (void)unused;
    if (is_set && python_minor < PYTHON_MONITORING)
        python_hook_threads();
    return 0;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The name of the script, first of the arguments. */
static void learn_main(const void *arguments)
{
    char path[512];
    static struct cpython_pages pages;
    struct cpython_memory memory;
    if (!arguments || !PYTHON_WORD(arguments, LAYOUT_SIZE))
        return;
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    if (cpython_text(&agent_python.py, &memory, PYTHON_WORD(arguments, LAYOUT_TUPLE), path,
                     sizeof path) > 0)
        python_lines_main(path);
}

/* A program with an interpreter in it: no word comes when its own code begins, so the first that is
 * run once the interpreter stands is taken for it. */
static bool is_embedded(void)
{
    const char *slash = strrchr(agent_settings.exe, '/');
    return slash && !starts(slash + 1, "python");
}

static bool begins_embedded(const char *event)
{
    static bool tried;
    if (is_set || tried || (!starts(event, "exec") && !starts(event, "import")) || !is_embedded() ||
        !python_api.is_initialized())
        return false;
    tried = true;
    return true;
}

static int on_audit(const char *event, void *arguments, void *unused);

/* The interpreter's word that leads to our entry among its audit hooks, or NULL. Up to 3.11 it
 * frees the entry by the allocator of its end, which with -X dev is not the one it was made by. */
static uint64_t *audit_head;

struct audit_entry {
    uint64_t next, hook, data;
};

static bool is_our_entry(uint64_t entry)
{
    int (*hook)(const char *, void *, void *) = on_audit;
    uint64_t ours;
    memcpy(&ours, &hook, sizeof ours);
    return PYTHON_WORD(entry, offsetof(struct audit_entry, hook)) == ours;
}

static void audit_find(void)
{
    uint64_t at = agent_python.py.runtime;
    for (uint64_t end = at + AUDIT_SEARCH; at && at < end && !audit_head; at += 8) {
        if (at % 4096 == 0 && !python_probe(at))
            return;
        uint64_t entry = PYTHON_WORD(at, 0);
        if (entry && entry % 8 == 0 && entry < ADDRESS_END && python_probe(entry + 8) &&
            is_our_entry(entry))
            audit_head = (uint64_t *)(uintptr_t)at;
    }
}

/* All hooks are about to be freed: ours stays, and is nobody's. */
static void audit_leave(void)
{
    if (audit_head && *audit_head && is_our_entry(*audit_head))
        *audit_head = PYTHON_WORD(*audit_head, offsetof(struct audit_entry, next));
    audit_head = NULL;
}

static int on_audit(const char *event, void *arguments, void *unused)
{
    (void)unused;
    if (starts(event, "cpython._PySys_ClearAuditHooks")) {
        audit_leave();
    } else if (begins_embedded(event)) {
        if (trace_settings.calls || trace_settings.lines)
            python_hooks_set();
    } else if (starts(event, "cpython.run_")) {
        if (starts(event, "cpython.run_file"))
            learn_main(arguments);
        if (trace_settings.calls || trace_settings.lines)
            python_hooks_set();
    } else if (starts(event, "_thread.start_new_thread")) {
        begins_thread = true;
    } else if (!setting && by_thread() && starts(event, "sys.setprofile")) {
        if (trace_self())
            trace_declare(TRACE_HOOK_TAKEN);
        python_api.add_pending(give_back, NULL);
    }
    return 0;
}

void python_hooks_init(void *handle)
{
    if (!trace_settings.on || !agent_python.ready || python_minor)
        return;
    python_minor = agent_python.py.minor;
    if (python_minor < 8 || !resolve(handle)) {
        python_minor = 0;
        return;
    }
    python_calls_init();
    if (trace_settings.calls || trace_settings.lines)
        if (python_api.add_audit_hook(on_audit, NULL) == 0)
            audit_find();
}
