/*
 * Frames up to CPython 3.11: a function in front of the interpreter loop (PEP 523) sees each one
 * begin and end. That is all it takes to trace Python's functions, and far less than the profile
 * hook, under which 3.11 gives up its specialised instructions. While a frame of a
 * chosen function runs, the thread's trace hook is ours; for what it calls the hook is taken away
 * again, so that only chosen lines cost anything.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/python_lines.h"

#define ON_LINE 2
#define TRACERS 10000         /* that count as ours */
#define DEEP_LEFT (1u << 20)  /* bytes of a stack */
#define CODE_ARGUMENTS 56     /* PyCodeObject.co_argcount of 3.11 */
#define INTERPRETER_SIZE 8192 /* bytes of PyInterpreterState that are searched, in 3.8 alone */

/* Where a PyThreadState has its trace hook, and a frame object its line. */
struct trace_layout_old {
    uint32_t function, profile, object;
    uint32_t flag, cframe, flag_size, on; /* as in python_hooks.c */
    uint32_t line;
};

static const struct trace_layout_old layouts[] = {
    [8] = {64, 56, 80, 48, 0, 4, 1, 108},
    [9] = {64, 56, 80, 48, 0, 4, 1, 108},
    [10] = {64, 56, 80, 0, 48, 4, 1, 100},
    [11] = {72, 64, 88, 0, 56, 1, 255, 40},
};

static struct trace_layout_old layout;
static uint32_t code_offset;

/* What a frame changes of its thread, and puts back. */
struct hook_state {
    void *function;
    uint32_t flag;
};

static char *flag_of(void *thread)
{
    char *at = (char *)thread + layout.flag;
    if (layout.cframe)
        memcpy(&at, (char *)thread + layout.cframe, sizeof at);
    return at;
}

static void *word_at(const void *thread, uint32_t offset)
{
    void *value;
    memcpy(&value, (const char *)thread + offset, sizeof value);
    return value;
}

static struct hook_state hook_get(void *thread)
{
    struct hook_state s = {.function = word_at(thread, layout.function)};
    memcpy(&s.flag, flag_of(thread), layout.flag_size);
    return s;
}

static void hook_put(void *thread, struct hook_state s)
{
    memcpy((char *)thread + layout.function, &s.function, sizeof s.function);
    memcpy(flag_of(thread), &s.flag, layout.flag_size);
}

/* What on_line stands in front of. Not in a run: those are gone in a child. */
static __thread python_profile_hook behind __attribute__((tls_model("initial-exec")));

/* The program's own hook, a debugger's or another profiler's, goes on behind ours; what it takes is
 * no line's. */
static int call_behind(struct line_run *run, void *self, void *frame, int what, void *argument)
{
    struct trace_line *line = run ? line_pause(run) : NULL;
    int result = behind(self, frame, what, argument);
    const struct trace_thread *t = trace_own();
    if (line && what != ON_LINE && t && t->lines == run)
        line_resume(run, line);
    return result;
}

static int on_line(void *self, void *frame, int what, void *argument)
{
    const struct trace_thread *t = trace_own();
    if (behind && call_behind(t ? t->lines : NULL, self, frame, what, argument) != 0)
        return -1;
    t = trace_own();
    if (what != ON_LINE || !t || !t->lines)
        return 0;
    int32_t line;
    memcpy(&line, (char *)frame + layout.line, sizeof line);
    line_begin(t->lines, line);
    return 0;
}

static void *ours(void)
{
    python_profile_hook hook = on_line;
    void *address;
    memcpy(&address, &hook, sizeof address);
    return address;
}

static void *eval_frame(void *thread, void *frame, int throwing)
{
    if (python_minor == 8) {
        void *(*old)(void *, int);
        memcpy(&old, &python_api.eval_default, sizeof old);
        return old(frame, throwing);
    }
    return python_api.eval_default(thread, frame, throwing);
}

/* A frame of a function that is not chosen, called by one that is. */
static void *run_apart(void *thread, void *frame, int throwing, struct hook_state before)
{
    struct hook_state apart = {.flag = before.flag};
    if (behind)
        memcpy(&apart.function, &behind, sizeof behind);
    else
        apart.flag = word_at(thread, layout.profile) ? layout.on : 0;
    hook_put(thread, apart);
    void *result = eval_frame(thread, frame, throwing);
    if (hook_get(thread).function == apart.function)
        hook_put(thread, before);
    return result;
}

static void *run_chosen(void *thread, void *frame, int throwing, const struct line_set *set,
                        struct trace_thread *t)
{
    struct hook_state before = hook_get(thread);
    struct line_run run = {.outer = t->lines, .set = set, .behind = behind};
    if (before.function != ours())
        memcpy(&behind, &before.function, sizeof behind);
    t->lines = &run;
    hook_put(thread, (struct hook_state){ours(), behind ? before.flag : layout.on});
    void *result = eval_frame(thread, frame, throwing);
    line_end(&run);
    t->lines = run.outer;
    behind = run.behind;
    if (hook_get(thread).function == ours())
        hook_put(thread, before);
    else
        trace_declare(TRACE_LINES_TAKEN);
    return result;
}

static void *run_plain(void *thread, void *frame, int throwing, const struct trace_thread *t)
{
    if (__builtin_expect(!t->lines, 1))
        return eval_frame(thread, frame, throwing);
    struct hook_state before = hook_get(thread);
    return before.function == ours() ? run_apart(thread, frame, throwing, before)
                                     : eval_frame(thread, frame, throwing);
}

static void *run_frame(void *thread, void *frame, int throwing, const struct trace_entry *e,
                       struct trace_thread *t)
{
    const struct line_set *set = line_set_of(e);
    if (__builtin_expect(set != NULL, 0))
        return run_chosen(thread, frame, throwing, set, t);
    bool decorates = e->decorates;
    void *result = run_plain(thread, frame, throwing, t);
    if (__builtin_expect(decorates, 0) && result && trace_self())
        python_lines_choose(result);
    return result;
}

static bool traces_frames; /* calls */
static bool watches;       /* for threads without a hook */
static void *on_eval(void *thread, void *frame, int throwing);

/* In 3.11 the call that only makes a generator runs a frame, too: it is no call of the function. */
static bool makes_generator(const void *frame, uint64_t code)
{
    const struct layout *l = &agent_python.py.layout;
    if (python_minor < 11)
        return false;
    uint32_t flags;
    memcpy(&flags, (const char *)(uintptr_t)code + l->code_flags, sizeof flags);
    return (flags & (CPYTHON_CODE_GENERATOR | CPYTHON_CODE_COROUTINE |
                     CPYTHON_CODE_ASYNC_GENERATOR)) != 0 &&
           ((const char *)frame)[l->frame_owner] == 0;
}

static enum python_plain plain; /* how code must be; 3.11 alone */
static bool subscripts;         /* lines are counted of what may be run by a[b] */

static enum python_plain plain_now(void)
{
    if (python_minor != 11)
        return PYTHON_AS_IT_WAS;
    return traces_frames && python_builtins_are_seen() ? PYTHON_PLAIN_CALLS
           : traces_frames || subscripts               ? PYTHON_PLAIN_FRAMES
                                                       : PYTHON_AS_IT_WAS;
}

static inline void make_plain(uint64_t code)
{
    if (__builtin_expect(python_plain_mark(code) != plain, 0))
        python_plain_make(code, plain);
}

/* Frames of 3.11 that call each other need none of C's stack, but for us they do. */
static inline bool is_deep(void)
{
    uint64_t low = agent_self.stack_low, size = agent_self.stack_end - low;
    uint64_t left = (uint64_t)(uintptr_t)__builtin_frame_address(0) - low;
    return left < (size / 4 < DEEP_LEFT ? size / 4 : DEEP_LEFT);
}

/* The rest is seen by the profile hook, in this thread, which takes all time that there is. */
static void *run_deep(void *thread, void *frame, int throwing)
{
    void *interpreter = python_interpreter();
    if (trace_settings.lines || python_api.thread_next(python_api.thread_head(interpreter)))
        trace_declare(TRACE_DEEP);
    python_api.set_eval(interpreter, python_api.eval_default);
    uint8_t flag = *python_flag_at(thread);
    bool hooked = traces_frames && python_hook_set(thread);
    void *result = eval_frame(thread, frame, throwing);
    if (hooked && python_hook_is_ours(thread)) {
        memset(python_hook_at(thread), 0, sizeof(python_profile_hook));
        *python_flag_at(thread) = flag;
    }
    python_api.set_eval(interpreter, on_eval);
    return result;
}

static void *on_eval(void *thread, void *frame, int throwing)
{
    uint64_t code = PYTHON_WORD(frame, code_offset);
    if (watches)
        python_hook_own(thread);
    if (python_minor == 11) {
        make_plain(code);
        if (__builtin_expect(is_deep() && (traces_frames || trace_settings.lines), 0))
            return run_deep(thread, frame, throwing);
    }
    struct trace_thread *t = trace_self();
    if (!t)
        return eval_frame(thread, frame, throwing);
    struct trace_entry *e = python_code_entry(code);
    if (!traces_frames || makes_generator(frame, code))
        return run_frame(thread, frame, throwing, e, t);
    uint32_t id = e->id;
    bool written = trace_enters(t, e);
    if (written)
        trace_put(t, TRACE_ENTER, id);
    void *result = run_frame(thread, frame, throwing, e, t);
    t = trace_self(); /* another one, in a child */
    if (t && trace_settings.depth)
        t->depth -= t->depth != 0 && !e->hidden;
    if (t && written && traces_frames)
        trace_put(t, TRACE_LEAVE, id);
    return result;
}

static void *on_eval_old(void *frame, int throwing)
{
    return on_eval(python_api.thread_get(), frame, throwing);
}

/* 3.8 has the slot but no function that sets it: it is found by what it holds. */
static bool set_slot(void *interpreter)
{
    void *fallback, *hook;
    void *(*old)(void *, int) = on_eval_old;
    memcpy(&fallback, &python_api.eval_default, sizeof fallback);
    memcpy(&hook, &old, sizeof hook);
    for (size_t at = 0; at < INTERPRETER_SIZE; at += sizeof(void *)) {
        void **slot = (void **)((char *)interpreter + at);
        if (at % 4096 == 0 && !python_probe((uint64_t)(uintptr_t)slot))
            return false;
        if (*slot == fallback) {
            *slot = hook;
            return true;
        }
    }
    return false;
}

/* Another's in that place, of a debugger or a compiler, stays there. */
static bool take_slot(void *interpreter)
{
    void *fallback;
    memcpy(&fallback, &python_api.eval_default, sizeof fallback);
    if (python_minor == 8)
        return set_slot(interpreter);
    if (!python_api.set_eval || python_api.get_eval(interpreter) != fallback)
        return false;
    python_api.set_eval(interpreter, on_eval);
    return true;
}

static bool hook_interpreter(void *interpreter)
{
    static bool set;
    layout = layouts[python_minor];
    code_offset = agent_python.py.layout.frame_code;
    set = set || take_slot(interpreter);
    return set;
}

/* Frames that are running are not asked again. */
static void plain_set(void)
{
    plain = plain_now();
    void *interpreter = python_interpreter();
    for (void *t = python_api.thread_head(interpreter); t && plain; t = python_api.thread_next(t))
        python_plain_frames(t, plain);
}

bool python_frames_set(bool on)
{
    traces_frames = on && hook_interpreter(python_interpreter());
    plain_set();
    return traces_frames == on;
}

bool python_frames_watch(void *interpreter)
{
    watches = watches || hook_interpreter(interpreter);
    return watches;
}

/* A __getitem__, by whatever name, has two arguments. */
void python_lines_eval_chosen(uint64_t code)
{
    int32_t arguments;
    memcpy(&arguments, (const char *)(uintptr_t)code + CODE_ARGUMENTS, sizeof arguments);
    if (subscripts || arguments != 2)
        return;
    subscripts = true;
    plain_set();
}

bool python_lines_eval_set(void)
{
    if (!hook_interpreter(python_interpreter()))
        return false;
    /* Up to 3.9 the interpreter counts the threads that trace, and looks for lines only if there
     * is one. Ours count from now on, many times: a program that takes its own hook away where it
     * found ours takes one from the count. */
    void *self = python_api.thread_get();
    struct hook_state before = hook_get(self);
    for (int i = 0; i < TRACERS && python_minor <= 9 && !before.function; i++) {
        python_api.set_trace(on_line, NULL);
        hook_put(self, before);
    }
    return true;
}
