/* The profile hook of CPython up to 3.11: every call and return, of Python's functions and of C's.
 * 3.11 itself mostly does without it: see python_builtins.c. */
#include "agent/python.h"
#include "agent/python_hooks.h"

/* The interpreter's names for what happens. */
enum { ON_CALL = 0, ON_RETURN = 3, ON_C_CALL = 4, ON_C_EXCEPTION = 5, ON_C_RETURN = 6 };

/* In 3.11 the frame object leads to the frame proper. */
#define FRAME_PROPER 24

static uint32_t code_offset;
static bool is_indirect;

void python_calls_init(void)
{
    code_offset = agent_python.py.layout.frame_code;
    is_indirect = python_minor >= 11;
}

static inline uint64_t code_of(const void *frame)
{
    uint64_t at = (uint64_t)(uintptr_t)frame;
    return PYTHON_WORD(is_indirect ? PYTHON_WORD(at, FRAME_PROPER) : at, code_offset);
}

static inline struct trace_entry *builtin_entry(const void *function)
{
    uint64_t definition = PYTHON_WORD(function, PYTHON_FUNCTION_DEFINITION);
    struct trace_entry *e = trace_find(definition);
    return __builtin_expect(e != NULL, 1)
               ? e
               : python_name_builtin(definition, (uint64_t)(uintptr_t)function, false);
}

/* C functions are left out with the Python function that calls them. */
static inline bool is_left_out(const void *frame)
{
    return __builtin_expect(trace_hiding, 0) && python_code_entry(code_of(frame))->hidden;
}

int python_on_call(void *self, void *frame, int what, void *argument)
{
    (void)self;
    struct trace_thread *t = trace_self();
    if (__builtin_expect(!t, 0))
        return 0;
    if (__builtin_expect(python_threads_coming, 0))
        python_hook_threads();
    struct trace_entry *e;
    switch (what) {
    case ON_CALL:
        e = python_code_entry(code_of(frame));
        if (trace_enters(t, e))
            trace_put(t, TRACE_ENTER, e->id);
        break;
    case ON_RETURN:
        e = python_code_entry(code_of(frame));
        if (trace_leaves(t, e))
            trace_put(t, TRACE_LEAVE, e->id);
        break;
    case ON_C_CALL:
        e = builtin_entry(argument);
        if (trace_settings.builtins && !is_left_out(frame) && trace_enters(t, e))
            trace_put(t, TRACE_ENTER, e->id);
        break;
    case ON_C_EXCEPTION:
    case ON_C_RETURN:
        e = builtin_entry(argument);
        if (trace_settings.builtins && !is_left_out(frame) && trace_leaves(t, e))
            trace_put(t, TRACE_LEAVE, e->id);
        break;
    default:
        break;
    }
    return 0;
}
