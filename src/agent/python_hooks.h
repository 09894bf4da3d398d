/*
 * The interpreter's own functions that the tracer calls, and the hooks it gives to it. Everything
 * here runs with the interpreter's lock held, on threads of Python, never in a signal handler.
 *
 * The hooks are set from an audit hook, which CPython (3.8 on) lets anybody add before it starts:
 * it tells when the program itself begins, when threads start, and when the program sets a hook of
 * its own, which is then in the place of ours until it takes it away again.
 */
#ifndef SONDE_AGENT_PYTHON_HOOKS_H
#define SONDE_AGENT_PYTHON_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/trace.h"

typedef int (*python_profile_hook)(void *self, void *frame, int what, void *argument);

struct python_api {
    int (*add_audit_hook)(int (*hook)(const char *, void *, void *), void *);
    void (*set_profile)(python_profile_hook hook, void *argument);
    void (*set_trace)(python_profile_hook hook, void *argument);
    void *(*thread_head)(void *interpreter);
    void *(*thread_next)(void *thread);
    void *(*thread_get)(void);
    int (*add_pending)(int (*call)(void *), void *);
    void (*error_clear)(void);
    int (*is_initialized)(void);
    void *none;
    /* From 3.12 on: */
    void *(*sys_object)(const char *name);
    void *(*attribute)(void *object, const char *name);
    void *(*call_method)(void *object, const char *name, const char *format, ...);
    void *(*call_object)(void *function, void *arguments);
    long (*as_long)(void *object);
    void *(*new_function)(void *definition, void *self, void *module);
    void (*release)(void *object);
    void (*retain)(void *object);
    int (*line_of)(void *code, int offset);
    void *builtin_type, *method_type, *descriptor_type;
    /* For lines, up to 3.11: */
    void (*set_eval)(void *interpreter, void *(*eval)(void *, void *, int));
    void *(*get_eval)(void *interpreter);
    void *(*eval_default)(void *thread, void *frame, int throw_flag);
    void *(*import)(const char *name);
    int (*set_attribute)(void *object, const char *name, void *value);
    /* For C functions, in 3.11: */
    void *(*compile)(const char *text, const char *file, int start);
    void *(*eval_code)(void *code, void *globals, void *locals);
    void *(*new_dict)(void);
};

extern struct python_api python_api;
extern unsigned python_minor;
#define PYTHON_MONITORING 12 /* minor version that has sys.monitoring */

/* After an interpreter was found, before it runs or in its middle; `handle` is dlopen's or NULL. */
void python_hooks_init(void *handle);
/* Sets what the settings ask for, in the calling thread's interpreter; and takes it away. */
bool python_hooks_set(void);
void python_hooks_unset(void);
bool python_hooks_trace(void); /* calls are traced by now */

/* Threads are started. Up to 3.11 each has a hook of its own: those of Python get it before
 * the one that started them gives up the interpreter's lock; those of C code, which come to Python
 * later if at all, when their first frame begins. */
extern uint32_t python_threads_coming;
void python_thread_coming(void); /* before it is started: its first frame may come at once */
void python_thread_came(void);   /* and after */
void python_hook_threads(void);
/* Where a thread's state has its profile hook; NULL where that is not known. */
void *python_hook_at(void *thread);
void *python_trace_hook_at(void *thread); /* and its trace hook */
/* Ours, if it has none; whether that is so. */
bool python_hook_set(void *thread);
/* Whether its profile hook is ours. */
bool python_hook_is_ours(void *thread);
/* In 3.11: whether the loop's instructions ask for hooks. */
uint8_t *python_flag_at(void *thread);
/* A function of the interpreter's, or NULL. */
void *python_find(const char *name);
/* The calling thread's, which has its lock. */
void *python_interpreter(void);
/* Of the calling thread, whose state that is, if it has none. */
void python_hook_own(void *thread);

/* Some function is left out: C functions that it calls are to be, too. */
extern bool trace_hiding;

/* ---- python_names.c */
struct trace_entry *python_name_code(uint64_t code);
/* A method definition and the object it is bound to, or the type that a descriptor says. */
struct trace_entry *python_name_builtin(uint64_t definition, uint64_t function, bool descriptor);
void python_names_init(void);

#define PYTHON_WORD(address, offset)                                                               \
    (*(const uint64_t *)(uintptr_t)((uint64_t)(address) + (offset)))

/* Where a code object has its name, file and first line. */
extern struct python_code_places {
    uint32_t name, file, line;
} python_code_places;

/* What a code object is known by; never 0. */
static inline uint64_t python_code_key(uint64_t code)
{
    const struct python_code_places *p = &python_code_places;
    uint64_t line = *(const uint32_t *)(uintptr_t)(code + p->line);
    return (code ^ line << 48) + PYTHON_WORD(code, p->name) * 0x9e3779b97f4a7c15ull +
           PYTHON_WORD(code, p->file) * 0xd6e8feb86659fd93ull;
}

static inline struct trace_entry *python_code_entry(uint64_t code)
{
    struct trace_entry *e = trace_find(python_code_key(code));
    return __builtin_expect(e != NULL, 1) ? e : python_name_code(code);
}

enum {
    PYTHON_FUNCTION_DEFINITION = 16, /* PyCFunctionObject.m_ml */
    PYTHON_FUNCTION_SELF = 24,
    PYTHON_FUNCTION_MODULE = 32,
    PYTHON_FUNCTION_WEAK = 40,
    PYTHON_FUNCTION_VECTORCALL = 48,
    PYTHON_DESCRIPTOR_TYPE = 16, /* PyMethodDescrObject.d_type */
    PYTHON_DESCRIPTOR_DEFINITION = 40,
    PYTHON_TYPE_METHODS = 232, /* PyTypeObject.tp_methods */
    PYTHON_TYPE_BASE = 256,
    PYTHON_DEFINITION_SIZE = 32, /* PyMethodDef; its first word is the name */
};

/* ---- python_calls.c, python_monitor.c */
int python_on_call(void *self, void *frame, int what, void *argument);
void python_calls_init(void);
/* Python's functions alone, up to 3.11; in python_lines_eval.c. With the interpreter's lock. */
bool python_frames_set(bool on);
/* From now on every frame's thread gets its hook first. Needs no lock. */
bool python_frames_watch(void *interpreter);
bool python_monitor_set(void);
void python_monitor_unset(void);

/* ---- python_plain.c, 3.11 alone */
enum python_plain { /* also the mark of code that has been made so */
                    PYTHON_AS_IT_WAS = 0,
                    PYTHON_PLAIN_FRAMES =
                        -30000, /* each frame of Python's begins by a call that can be seen */
                    PYTHON_PLAIN_CALLS = -20000, /* and each call of a C function is one */
};
#define PYTHON_CODE_WARMUP 52 /* PyCodeObject.co_warmup: where the mark is */
void python_plain_make(uint64_t code, enum python_plain how);
static inline int python_plain_mark(uint64_t code)
{
    return *(const int16_t *)(uintptr_t)(code + PYTHON_CODE_WARMUP);
}
/* The code of all frames that the thread is in. */
void python_plain_frames(void *thread, enum python_plain how);

/* ---- python_builtins.c, 3.11 alone */
/* From now on calls of C functions are written; false if they cannot be seen. */
bool python_builtins_set(void);
void python_builtins_leave(void);
bool python_builtins_are_seen(void);

/* ---- python_setprofile.c */
/* With calls of C functions alone. */
void python_setprofile_watch(void);
void python_setprofile_leave(void);

#endif
