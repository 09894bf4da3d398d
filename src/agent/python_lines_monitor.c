/*
 * Lines from CPython 3.12 on, by sys.monitoring: the beginning of every function is seen once, to
 * find those that are chosen; from then on only their own code has events.
 */
#include <string.h>

#include "agent/publish.h"
#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/python_lines.h"

#define FASTCALL 0x80
#define RUNS 64 /* activations that are made at once */

struct definition {
    const char *name;
    void *(*function)(void *self, void *const *arguments, int64_t count);
    int flags;
    const char *doc;
};

static int tool = -1;
static void *disable;
static long local_events;

/* Activations are kept when they end: the next one of the thread takes them again. */
static struct line_run *run_take(struct trace_thread *t)
{
    if (!t->spare_runs) {
        struct line_run *made = publish_map_wiped(RUNS * sizeof *made);
        for (size_t i = 0; made && i < RUNS; i++) {
            made[i].outer = t->spare_runs;
            t->spare_runs = &made[i];
        }
    }
    struct line_run *run = t->spare_runs;
    if (run)
        t->spare_runs = run->outer;
    return run;
}

/* What on_traced stands in front of. Not in a run: those are gone in a child. */
static __thread python_profile_hook behind __attribute__((tls_model("initial-exec")));

/* In front of the program's own trace hook, a debugger's or another profiler's: what that takes is
 * no line's. */
static int on_traced(void *self, void *frame, int what, void *argument)
{
    struct trace_thread *t = trace_own();
    struct line_run *run = t ? t->lines : NULL;
    struct trace_line *line = run ? line_pause(run) : NULL;
    int result = behind(self, frame, what, argument);
    if (line && trace_own() == t && t->lines == run)
        line_resume(run, line);
    return result;
}

static python_profile_hook hook_get(void)
{
    python_profile_hook hook = NULL;
    const void *at = python_trace_hook_at(python_api.thread_get());
    if (at)
        memcpy(&hook, at, sizeof hook);
    return hook;
}

static void hook_put(python_profile_hook hook)
{
    memcpy(python_trace_hook_at(python_api.thread_get()), &hook, sizeof hook);
}

static void push(const struct line_set *set)
{
    struct trace_thread *t = trace_self();
    struct line_run *run = t ? run_take(t) : NULL;
    if (!run)
        return;
    *run = (struct line_run){.outer = t->lines, .set = set};
    t->lines = run;
    python_profile_hook hook = hook_get();
    if (__builtin_expect(hook && hook != on_traced, 0)) {
        run->behind = behind = hook;
        hook_put(on_traced);
    }
}

static void end(struct trace_thread *t)
{
    struct line_run *run = t->lines;
    line_end(run);
    if (__builtin_expect(run->behind && hook_get() == on_traced, 0))
        hook_put(run->behind);
    t->lines = run->outer;
    run->outer = t->spare_runs;
    t->spare_runs = run;
}

/* Up to the innermost run of this code; those within it ended unseen. */
static void pop(uint64_t code)
{
    struct trace_thread *t = trace_self();
    struct line_run *run = t ? t->lines : NULL;
    while (run && run->set->code != code)
        run = run->outer;
    if (!run)
        return;
    while (t->lines != run)
        end(t);
    end(t);
}

static const struct trace_entry *entry_of(void *const *arguments)
{
    return python_code_entry((uint64_t)(uintptr_t)arguments[0]);
}

static void *on_start(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    if (!trace_self())
        return python_api.none;
    uint64_t code = (uint64_t)(uintptr_t)arguments[0];
    bool known = trace_find(python_code_key(code)) != NULL;
    const struct trace_entry *entry = entry_of(arguments);
    const struct line_set *set = line_set_of(entry);
    if (!set && !entry->decorates)
        return disable;
    if (!known)
        python_lines_monitor_choose(code);
    if (set)
        push(set);
    return python_api.none;
}

static void *on_end(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    uint64_t code = (uint64_t)(uintptr_t)arguments[0];
    const struct trace_thread *t = trace_self();
    bool innermost = t && t->lines && t->lines->set->code == code;
    if (t && !innermost && entry_of(arguments)->decorates)
        python_lines_choose(arguments[2]);
    pop(code);
    return python_api.none;
}

/* An exception leaves a frame, or enters one: events that cannot be had of chosen code alone. */
static void *on_unwind(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_thread *t = trace_own();
    if (t && t->lines)
        pop((uint64_t)(uintptr_t)arguments[0]);
    return python_api.none;
}

static void *on_throw(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    const struct line_set *set = trace_self() ? line_set_of(entry_of(arguments)) : NULL;
    if (set)
        push(set);
    return python_api.none;
}

static void *on_line(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_thread *t = trace_own();
    if (t && t->lines && t->lines->set->code == (uint64_t)(uintptr_t)arguments[0])
        line_begin(t->lines, (int32_t)python_api.as_long(arguments[1]));
    return python_api.none;
}

/* A jump back within one line runs that line again, as sys.settrace counts. */
static void *on_jump(void *self, void *const *arguments, int64_t count)
{
    (void)self;
    (void)count;
    struct trace_thread *t = trace_own();
    long from = python_api.as_long(arguments[1]), to = python_api.as_long(arguments[2]);
    if (to > from)
        return disable;
    int here = python_api.line_of(arguments[0], (int)from);
    int there = python_api.line_of(arguments[0], (int)to);
    if (here != there)
        return disable;
    if (t && t->lines && t->lines->set->code == (uint64_t)(uintptr_t)arguments[0])
        line_begin(t->lines, there);
    return python_api.none;
}

static struct definition on_start_def = {"sonde_start", on_start, FASTCALL, NULL},
                         on_end_def = {"sonde_end", on_end, FASTCALL, NULL},
                         on_unwind_def = {"sonde_unwind", on_unwind, FASTCALL, NULL},
                         on_throw_def = {"sonde_throw", on_throw, FASTCALL, NULL},
                         on_line_def = {"sonde_line", on_line, FASTCALL, NULL},
                         on_jump_def = {"sonde_jump", on_jump, FASTCALL, NULL};

static const struct {
    const char *event;
    struct definition *definition;
    bool everywhere, local;
} events[] = {
    {"PY_START", &on_start_def, true, true},    {"PY_RESUME", &on_start_def, false, true},
    {"PY_RETURN", &on_end_def, false, true},    {"PY_YIELD", &on_end_def, false, true},
    {"PY_UNWIND", &on_unwind_def, true, false}, {"PY_THROW", &on_throw_def, true, false},
    {"LINE", &on_line_def, false, true},        {"JUMP", &on_jump_def, false, true},
};

static bool call(void *result)
{
    if (result)
        python_api.release(result);
    else
        python_api.error_clear();
    return result != NULL;
}

void python_lines_monitor_choose(uint64_t code)
{
    void *monitoring = tool >= 0 ? python_api.sys_object("monitoring") : NULL;
    if (monitoring)
        call(python_api.call_method(monitoring, "set_local_events", "iOl", tool,
                                    (void *)(uintptr_t)code, local_events));
}

bool python_lines_monitor_set(void)
{
    const struct python_api *api = &python_api;
    void *monitoring = api->sys_object("monitoring");
    void *names = monitoring ? api->attribute(monitoring, "events") : NULL;
    static const int choices[] = {3, 4, 5};
    for (size_t i = 0; names && i < sizeof choices / sizeof *choices && tool < 0; i++)
        if (call(api->call_method(monitoring, "use_tool_id", "is", choices[i], "sonde-lines")))
            tool = choices[i];
    if (tool < 0)
        return call(names) && false;
    disable = api->attribute(monitoring, "DISABLE");
    long everywhere = 0;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        void *number = api->attribute(names, events[i].event);
        long event = number ? api->as_long(number) : 0;
        void *function = api->new_function(events[i].definition, NULL, NULL);
        call(number);
        call(api->call_method(monitoring, "register_callback", "ilO", tool, event, function));
        call(function);
        everywhere |= events[i].everywhere ? event : 0;
        local_events |= events[i].local ? event : 0;
    }
    call(names);
    return disable && call(api->call_method(monitoring, "set_events", "il", tool, everywhere));
}
