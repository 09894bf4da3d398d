/*
 * What Python's functions are called, as its own profilers call them. Code objects are read as the
 * sampler reads them, and known by their address and what is written there: another may come to lie
 * in the same place. (The interpreter would tell of their ends to who keeps something with them,
 * but then calls whatever else was ever registered for that, though it be gone.)
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"
#include "agent/python_lines.h"

#define BASES_MAX 64
#define METHODS_MAX 4096

bool trace_hiding;
struct python_code_places python_code_places;

void python_names_init(void)
{
    const struct layout *l = &agent_python.py.layout;
    python_code_places = (struct python_code_places){l->code_name, l->code_filename, l->code_first};
}

/* Patterns without a slash are for the last part of a path. */
static bool path_matches(const char *patterns, const char *path)
{
    const char *name = strrchr(path, '/');
    return trace_matches(patterns, path, strlen(path)) ||
           (name && trace_matches(patterns, name + 1, strlen(name + 1)));
}

/* Of python/sonde itself: a span is begun in a function of that, but lasts longer. */
static bool is_own(const char *path)
{
    static const char *const files[] = {"/sonde/spans.py", "/sonde/_library.py",
                                        "/sonde/profiler.py", "/sonde/lines.py",
                                        "/sonde/magics.py"};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t tail = strlen(files[i]);
        if (len >= tail && !strcmp(path + len - tail, files[i]))
            return true;
    }
    return false;
}

static bool is_hidden(const char *path)
{
    const struct trace_settings *s = &trace_settings;
    return is_own(path) || (s->only[0] && !path_matches(s->only, path)) ||
           (s->skip[0] && path_matches(s->skip, path));
}

struct trace_entry *python_name_code(uint64_t code)
{
    struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_code c;
    memset(&pages, 0, sizeof pages);
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    struct trace_text text = {.kind = TRACE_NAME_PYTHON, .name = "?", .name_len = 1, .path = ""};
    bool known = cpython_code_read(&agent_python.py, &memory, code, &c) == 0;
    if (known) {
        text.name = c.qualname;
        text.name_len = strlen(c.qualname);
        text.path = c.filename;
        text.path_len = strlen(c.filename);
        text.line = c.first_line;
    }
    struct trace_entry *e = trace_name(python_code_key(code), &text);
    e->hidden = known && is_hidden(c.filename);
    trace_hiding = trace_hiding || e->hidden;
    if (known && e->id)
        line_set_consider(e, code, c.filename, c.qualname);
    return e;
}

/* The type among `type` and its bases whose methods have this definition; 0: none. */
static uint64_t defining_type(uint64_t type, uint64_t definition)
{
    for (int i = 0; i < BASES_MAX && type; i++, type = PYTHON_WORD(type, PYTHON_TYPE_BASE)) {
        uint64_t m = PYTHON_WORD(type, PYTHON_TYPE_METHODS);
        for (int k = 0; m && k < METHODS_MAX && PYTHON_WORD(m, 0); k++, m += PYTHON_DEFINITION_SIZE)
            if (m == definition)
                return type;
    }
    return 0;
}

static char *append(char *at, const char *end, const char *text)
{
    while (*text && at < end)
        *at++ = *text++;
    return at;
}

static char *append_word(char *at, const char *end, uint64_t text)
{
    return append(at, end, text ? (const char *)(uintptr_t)text : "?");
}

/* "{method 'append' of 'list' objects}", "{built-in method builtins.len}". */
static size_t builtin_text(char *to, size_t size, uint64_t definition, uint64_t type,
                           uint64_t module)
{
    char *at = to;
    const char *end = to + size;
    if (type) {
        at = append(at, end, "{method '");
        at = append_word(at, end, PYTHON_WORD(definition, 0));
        at = append(at, end, "' of '");
        at = append_word(at, end, PYTHON_WORD(type, LAYOUT_TYPE_NAME));
        at = append(at, end, "' objects}");
        return (size_t)(at - to);
    }
    char name[128];
    struct cpython_pages pages;
    struct cpython_memory memory;
    memset(&pages, 0, sizeof pages);
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    at = append(at, end, "{built-in method ");
    if (module && cpython_text(&agent_python.py, &memory, module, name, sizeof name) > 0) {
        at = append(at, end, name);
        at = append(at, end, ".");
    }
    at = append_word(at, end, PYTHON_WORD(definition, 0));
    at = append(at, end, "}");
    return (size_t)(at - to);
}

struct trace_entry *python_name_builtin(uint64_t definition, uint64_t function, bool descriptor)
{
    char name[256];
    uint64_t type = 0, module = 0;
    if (descriptor) {
        type = PYTHON_WORD(function, PYTHON_DESCRIPTOR_TYPE);
    } else {
        uint64_t self = PYTHON_WORD(function, PYTHON_FUNCTION_SELF);
        module = PYTHON_WORD(function, PYTHON_FUNCTION_MODULE);
        type = self ? defining_type(PYTHON_WORD(self, LAYOUT_TYPE), definition) : 0;
    }
    struct trace_text text = {.kind = TRACE_NAME_BUILTIN, .name = name};
    text.name_len = builtin_text(name, sizeof name, definition, type, module);
    return trace_name(definition, &text);
}
