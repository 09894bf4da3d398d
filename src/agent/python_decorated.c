/*
 * Functions whose lines a script asks for by decorating them: with `profile` of the builtins, which
 * is ours, or with that of line_profiler or memory_profiler where those are installed. Theirs does
 * what it does; what it returns leads to the function that it was given.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/python_lines.h"

#define KEYWORDS 0x3    /* METH_VARARGS | METH_KEYWORDS */
#define WRAPPERS_MAX 16 /* one around another */
#define CELLS_MAX 32
#define CELL_CONTENTS 16 /* PyCellObject.ob_ref */

/* The packages' files that have decorators or what these return, and the decorators' names. */
static const struct {
    const char *file, *name; /* NULL: wrappers alone */
} packages[] = {
    {"/line_profiler/explicit_profiler.py", "__call__"},
    {"/line_profiler/line_profiler.py", "__call__"},
    {"/line_profiler/profiler_mixin.py", NULL},
    {"/memory_profiler.py", "profile"},
    {"/memory_profiler.py", "__call__"},
};

static bool ends(const char *text, const char *with)
{
    size_t len = strlen(text), tail = strlen(with);
    return len >= tail && !strcmp(text + len - tail, with);
}

bool python_is_decorator(const char *path, const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (packages[i].name && !strcmp(dot ? dot + 1 : name, packages[i].name) &&
            ends(path, packages[i].file))
            return true;
    return false;
}

/* Whether a code object is a package's own, such as a wrapper's. */
static bool is_packages(const void *code)
{
    struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_code c;
    memset(&pages, 0, sizeof pages);
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    if (cpython_code_read(&agent_python.py, &memory, (uint64_t)(uintptr_t)code, &c) != 0)
        return false;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (ends(c.filename, packages[i].file))
            return true;
    return false;
}

/* A new reference, or NULL and no exception. */
static void *attribute(void *object, const char *name)
{
    void *value = python_api.attribute(object, name);
    if (!value)
        python_api.error_clear();
    return value;
}

/* The function that another one has in its closure. A new reference. */
static void *closed_over(void *function)
{
    void *closure = attribute(function, "__closure__"), *found = NULL;
    uint64_t count = closure && closure != python_api.none ? PYTHON_WORD(closure, LAYOUT_SIZE) : 0;
    for (uint64_t i = 0; i < count && i < CELLS_MAX && !found; i++) {
        uint64_t cell = PYTHON_WORD(closure, LAYOUT_TUPLE + 8 * i);
        void *inner = (void *)(uintptr_t)PYTHON_WORD(cell, CELL_CONTENTS);
        void *code = inner ? attribute(inner, "__code__") : NULL;
        if (!code)
            continue;
        python_api.release(code);
        python_api.retain(inner);
        found = inner;
    }
    if (closure)
        python_api.release(closure);
    return found;
}

/* What a method, a property, a partial or a wrapper is made of. A new reference. */
static void *within(void *object)
{
    static const char *const ways[] = {"__func__", "__wrapped__", "fget", "func"};
    void *inner = NULL;
    for (size_t i = 0; !inner && i < sizeof ways / sizeof *ways; i++)
        inner = attribute(object, ways[i]);
    return inner ? inner : closed_over(object);
}

/* The code of what was decorated. A new reference. */
static void *code_of(void *object)
{
    void *code = NULL;
    python_api.retain(object);
    for (int i = 0; object && i < WRAPPERS_MAX; i++) {
        code = attribute(object, "__code__");
        if (code && !is_packages(code))
            break;
        void *inner = within(object);
        if (code)
            python_api.release(code);
        python_api.release(object);
        code = NULL;
        object = inner;
    }
    if (object)
        python_api.release(object);
    return code;
}

bool python_lines_choose(void *function)
{
    void *code = code_of(function);
    bool chosen = code && line_set_choose_code(code);
    if (code)
        python_api.release(code); /* the function holds it */
    return chosen;
}

static void *decorator; /* the function object */

/* profile(function), as other line profilers have it; with options alone, the decorator itself. */
static void *on_profile(void *self, void *arguments, void *keywords)
{
    (void)self;
    (void)keywords;
    void *object = PYTHON_WORD(arguments, LAYOUT_SIZE)
                       ? (void *)(uintptr_t)PYTHON_WORD(arguments, LAYOUT_TUPLE)
                       : decorator;
    if (object != decorator && trace_self())
        python_lines_choose(object);
    python_api.retain(object);
    return object;
}

static struct {
    const char *name;
    void *(*function)(void *, void *, void *);
    int flags;
    const char *doc;
} profile_definition = {"profile", on_profile, KEYWORDS, "Counts the lines of a function."};

/* Without a hook of ours this does nothing that a program could see. */
void python_decorator_set(void)
{
    void *builtins = python_api.import("builtins");
    void *there = builtins ? python_api.attribute(builtins, "profile") : NULL;
    if (there) {
        python_api.release(there);
        return;
    }
    python_api.error_clear();
    decorator = builtins ? python_api.new_function(&profile_definition, NULL, NULL) : NULL;
    if (!decorator || python_api.set_attribute(builtins, "profile", decorator) != 0)
        python_api.error_clear();
}
