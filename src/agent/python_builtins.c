/*
 * Calls of C functions in CPython 3.11 without the profile hook, under which every instruction
 * there takes twice as long. All such calls go through a few functions of the interpreter, once the
 * instructions that would not are gone (python_plain.c): their callers are led here, and what comes
 * from the interpreter loop's instructions for calls is written, as the profile hook would tell it.
 * Whether this interpreter was compiled in such a way is tried out before it is relied on.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "agent/detour.h"
#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/real.h"

#define CALL 171 /* instructions */
#define CALL_FUNCTION_EX 142
#define FILE_INPUT 257
#define SITES_MAX 16
#define ARGUMENTS_BEFORE (1ull << 63) /* the first word before the arguments may be used */

enum { VECTORCALL, OBJECT_CALL, TYPE_CALL, DICT_CALL, WAYS };
static struct detour ways[WAYS];

static bool follows;
static uint64_t interpreter; /* whose frames are seen */
/* Where calls come from that the loop has in functions of their own, those under sys.settrace. */
static uint64_t sites[SITES_MAX];
static size_t sites_len;
static struct {
    bool on, within;
    size_t seen;
    struct trace_entry entry; /* stands for any */
} trial;

static bool is_site(uint64_t from)
{
    if (__builtin_expect(from - agent_python.py.eval < agent_python.eval_end - agent_python.py.eval,
                         1))
        return true;
    for (size_t i = 0; i < sites_len; i++)
        if (sites[i] == from)
            return true;
    return false;
}

/* What the loop is at. */
static inline uint8_t instruction_of(uint64_t frame)
{
    return *(const uint8_t *)(uintptr_t)PYTHON_WORD(frame, agent_python.py.layout.frame_instr);
}

static inline uint64_t frame_of(const void *thread)
{
    const struct layout *l = &agent_python.py.layout;
    return PYTHON_WORD(PYTHON_WORD(thread, l->thread_frame), l->cframe_frame);
}

static inline bool is_at_call(uint64_t frame)
{
    uint8_t instruction = frame ? instruction_of(frame) : 0;
    return instruction == CALL || instruction == CALL_FUNCTION_EX;
}

static inline bool is_builtin(const void *callable, uint64_t arguments)
{
    uint64_t type = PYTHON_WORD(callable, LAYOUT_TYPE);
    return type == (uint64_t)(uintptr_t)python_api.builtin_type ||
           (type == (uint64_t)(uintptr_t)python_api.descriptor_type && arguments);
}

static inline struct trace_entry *entry_of(const void *callable)
{
    bool descriptor =
        PYTHON_WORD(callable, LAYOUT_TYPE) == (uint64_t)(uintptr_t)python_api.descriptor_type;
    uint64_t definition = PYTHON_WORD(callable, descriptor ? PYTHON_DESCRIPTOR_DEFINITION
                                                           : PYTHON_FUNCTION_DEFINITION);
    struct trace_entry *e = trace_find(definition);
    return __builtin_expect(e != NULL, 1)
               ? e
               : python_name_builtin(definition, (uint64_t)(uintptr_t)callable, descriptor);
}

static struct trace_entry *begin_trial(uint64_t from)
{
    if (trial.within || !is_at_call(frame_of(python_api.thread_get())))
        return NULL;
    trial.seen++;
    trial.within = true; /* one way may lead on to another */
    if (!is_site(from) && sites_len < SITES_MAX)
        sites[sites_len++] = from;
    return &trial.entry;
}

/* NULL, or a call has begun that is to end with end_call. */
static inline struct trace_entry *begin_call(const void *callable, uint64_t arguments,
                                             uint64_t from)
{
    if (!is_builtin(callable, arguments) || !(follows || trial.on))
        return NULL;
    if (__builtin_expect(trial.on, 0))
        return begin_trial(from);
    if (!is_site(from))
        return NULL;
    void *thread = python_api.thread_get();
    uint64_t frame = frame_of(thread);
    struct trace_thread *t = trace_self();
    if (!t || !is_at_call(frame) || python_hook_is_ours(thread) ||
        PYTHON_WORD(thread, agent_python.py.layout.thread_interp) != interpreter)
        return NULL;
    if (__builtin_expect(trace_hiding, 0) &&
        python_code_entry(PYTHON_WORD(frame, agent_python.py.layout.frame_code))->hidden)
        return NULL;
    struct trace_entry *e = entry_of(callable);
    if (trace_enters(t, e))
        trace_put(t, TRACE_ENTER, e->id);
    return e;
}

static inline void end_call(const struct trace_entry *e)
{
    struct trace_thread *t = follows ? trace_self() : NULL; /* another one, in a child */
    if (t && trace_leaves(t, e))
        trace_put(t, TRACE_LEAVE, e->id);
    trial.within = false;
}

#define FROM ((uint64_t)(uintptr_t)__builtin_return_address(0))

typedef void *(*vectorcall)(void *, void *const *, size_t, void *);
typedef void *(*object_call)(void *, void *, void *);
typedef void *(*other_call)(void *, void *, void *const *, uint64_t, void *);

static void *on_vectorcall(void *callable, void *const *arguments, size_t count, void *names)
{
    vectorcall original = (vectorcall)(uintptr_t)ways[VECTORCALL].original;
    const struct trace_entry *e = begin_call(callable, count & ~ARGUMENTS_BEFORE, FROM);
    if (!e)
        return original(callable, arguments, count, names);
    void *result = original(callable, arguments, count, names);
    end_call(e);
    return result;
}

static void *on_object_call(void *callable, void *arguments, void *names)
{
    object_call original = (object_call)(uintptr_t)ways[OBJECT_CALL].original;
    uint64_t count = PYTHON_WORD(arguments, LAYOUT_SIZE);
    const struct trace_entry *e = begin_call(callable, count, FROM);
    if (!e)
        return original(callable, arguments, names);
    void *result = original(callable, arguments, names);
    end_call(e);
    return result;
}

/* The others have the same arguments. */
static inline void *on_other(int way, uint64_t from, void *thread, void *callable,
                             void *const *arguments, uint64_t count, void *names)
{
    other_call original = (other_call)(uintptr_t)ways[way].original;
    const struct trace_entry *e = begin_call(callable, count & ~ARGUMENTS_BEFORE, from);
    if (!e)
        return original(thread, callable, arguments, count, names);
    void *result = original(thread, callable, arguments, count, names);
    end_call(e);
    return result;
}

static void *on_type_call(void *thread, void *callable, void *const *arguments, uint64_t count,
                          void *names)
{
    return on_other(TYPE_CALL, FROM, thread, callable, arguments, count, names);
}

static void *on_dict_call(void *thread, void *callable, void *const *arguments, uint64_t count,
                          void *names)
{
    return on_other(DICT_CALL, FROM, thread, callable, arguments, count, names);
}

/* ---- whether it can be done here */

static bool find_way(int way, const char *name, void (*hook)(void))
{
    void *function = python_find(name);
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (!function || !dladdr1 || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        !symbol)
        return false;
    ways[way] = (struct detour){.function = (uint64_t)(uintptr_t)function,
                                .hook = (uint64_t)(uintptr_t)hook,
                                .size = symbol->st_size};
    return true;
}

static bool find_ways(void)
{
    return find_way(VECTORCALL, "PyObject_Vectorcall", (void (*)(void))on_vectorcall) &&
           find_way(OBJECT_CALL, "PyObject_Call", (void (*)(void))on_object_call) &&
           find_way(TYPE_CALL, "_PyObject_MakeTpCall", (void (*)(void))on_type_call) &&
           find_way(DICT_CALL, "_PyObject_FastCallDictTstate", (void (*)(void))on_dict_call);
}

static int ignore(void *self, void *frame, int what, void *argument)
{
    (void)self, (void)frame, (void)what, (void)argument;
    return 0;
}

/* Functions of every kind, which call no others. */
static const char trial_text[] =
    "len(())\nglobals()\nisinstance(0, int)\nsorted(())\nmax(0, 0)\n[].append(0)\n'a'.split()\n"
    "'a'.count('a')\nstr.lower('a')\nlen(*((),))\nmax(*(0, 0))\nstr.lower(*('a',))\n";
#define TRIAL_CALLS 12

static void run_trial(void *code)
{
    void *names = python_api.new_dict();
    void *result = names ? python_api.eval_code(code, names, names) : NULL;
    if (!result)
        python_api.error_clear();
    else
        python_api.release(result);
    if (names)
        python_api.release(names);
}

/* As it is, and as it is with a trace hook, under which the loop calls by other ways. */
static bool all_is_seen(void)
{
    void *code = python_api.compile(trial_text, "<sonde>", FILE_INPUT);
    if (!code) {
        python_api.error_clear();
        return false;
    }
    void *thread = python_api.thread_get(), *at = python_trace_hook_at(thread), *before;
    python_profile_hook hook = ignore;
    memcpy(&before, at, sizeof before);
    trial.on = true;
    run_trial(code);
    bool seen = trial.seen == TRIAL_CALLS;
    if (!before) {
        memcpy(at, &hook, sizeof hook);
        uint8_t *flag = python_flag_at(thread), was = *flag;
        *flag = UINT8_MAX;
        run_trial(code);
        *flag = was;
        memcpy(at, &before, sizeof before);
        seen = seen && trial.seen == 2 * TRIAL_CALLS;
    }
    trial.on = false;
    python_api.release(code);
    return seen;
}

bool python_builtins_set(void)
{
    static bool tried, usable;
    if (!tried && python_minor == 11) {
        size_t failed;
        tried = true;
        usable = agent_python.eval_end && python_api.compile && python_api.eval_code &&
                 python_api.new_dict && find_ways() && detours_make(ways, WAYS, &failed) == 0 &&
                 all_is_seen();
    }
    interpreter = (uint64_t)(uintptr_t)python_interpreter();
    follows = usable;
    return usable;
}

void python_builtins_leave(void)
{
    follows = false;
}

bool python_builtins_are_seen(void)
{
    return follows;
}
