/*
 * What programs say themselves: include/sonde_spans.h for those in C, python/sonde for Python. The
 * functions that take an interpreter's lock for granted say so; python/sonde calls them that way.
 */
#include <string.h>

#include "agent/heap.h"
#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/python_lines.h"
#include "agent/real.h"
#include "agent/trace.h"

EXPORT int sonde_is_traced(void);
EXPORT void sonde_span_begin(const char *name);
EXPORT void sonde_span_end(const char *name);
EXPORT void sonde_mark(const char *name);
EXPORT void sonde_counter(const char *name, int64_t value);
EXPORT int sonde_memory(int64_t *held, int64_t *high, int reset);
EXPORT int sonde_python_join(void);
EXPORT int sonde_python_trace(int on);
EXPORT void sonde_python_leave(void);
EXPORT int sonde_python_lines(void *function);

/* A key that no address is: the names are hashed. */
static struct trace_entry *entry_of(const char *name, enum trace_name_kind kind)
{
    uint64_t hash = 0xcbf29ce484222325ull + kind;
    size_t len = 0;
    for (; name[len] && len < TRACE_TEXT_MAX; len++)
        hash = (hash ^ (uint8_t)name[len]) * 0x100000001b3ull;
    uint64_t key = hash | 1ull << 63;
    struct trace_entry *e = trace_find(key);
    if (e)
        return e;
    return trace_name(key, &(struct trace_text){.kind = kind, .name = name, .name_len = len});
}

static void say(enum trace_word word, const char *name)
{
    struct trace_thread *t = name && trace_process ? trace_self() : NULL;
    if (t)
        trace_put(t, word, entry_of(name, TRACE_NAME_SPAN)->id);
}

int sonde_is_traced(void)
{
    return trace_process && trace_self() != NULL;
}

void sonde_span_begin(const char *name)
{
    say(TRACE_ENTER, name);
}

void sonde_span_end(const char *name)
{
    say(TRACE_LEAVE, name);
}

void sonde_mark(const char *name)
{
    say(TRACE_MARK, name);
    /* What was allocated before it is told from what comes after: the collector looks now. */
    struct trace_thread *t = trace_own();
    if (heap_process && heap_process->segment && t)
        trace_await(t);
}

void sonde_counter(const char *name, int64_t value)
{
    struct trace_thread *t = name && trace_process ? trace_self() : NULL;
    if (t)
        trace_put_value(t, entry_of(name, TRACE_NAME_COUNTER)->id, value);
}

/* What the calling thread holds, and the most of it since it was last asked to reset; -1 where the
 * heap is not recorded. */
int sonde_memory(int64_t *held, int64_t *high, int reset)
{
    struct heap_thread *h = agent_self.heap;
    if (!heap_has_place(&agent_self) || heap_settings.mode != HEAP_EXACT)
        return -1;
    *held = h->live;
    *high = h->high;
    if (reset)
        heap_high_start(h);
    return 0;
}

/* With the interpreter's lock. A collector has been started for this process, and the environment
 * says where: this library takes part in its session from now on. */
int sonde_python_join(void)
{
    return agent_join() ? 0 : -1;
}

static unsigned tracing; /* how many parts of the program asked for it */

static int trace_calls(bool on)
{
    python_hooks_unset();
    trace_settings.calls = trace_settings.builtins = on;
    return !on || python_hooks_set() ? 0 : -1;
}

/* With the lock. Every call from now on, or no more: one within another ends with the outer one,
 * and where the whole program is traced, it stays so. */
int sonde_python_trace(int on)
{
    static bool always;
    if (!trace_process || !python_minor)
        return -1;
    if (!tracing)
        always = python_hooks_trace();
    unsigned before = tracing;
    tracing = on ? before + 1 : before - (before > 0);
    return always || (before > 0) == (tracing > 0) ? 0 : trace_calls(on);
}

/* With the lock. The session is over: the collector ends. */
void sonde_python_leave(void)
{
    tracing = 0;
    python_hooks_unset();
    agent_leave();
}

/* With the lock. The lines of a function are counted from now on. */
int sonde_python_lines(void *function)
{
    if (!trace_process || !python_minor || !trace_self())
        return -1;
    return python_lines_choose(function) ? 0 : -1;
}
