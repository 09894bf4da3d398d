/*
 * Recognising an interpreter by the symbols that every build of it exports; see cpython.h. What is
 * close to one but cannot be read is refused by name.
 */
#include "cpython/cpython.h"

#include <string.h>

#include "cpython/describe.h"
#include "cpython/memory.h"
#include "cpython/version.h"

const char *cpython_fault_text(int fault)
{
    static const char *const text[] = {
        [-CPYTHON_OK] = "is a CPython that can be read",
        [-CPYTHON_NOT_PYTHON] = "is not a CPython interpreter",
        [-CPYTHON_NO_VERSION] = "is a CPython whose version cannot be seen",
        [-CPYTHON_TOO_OLD] = "is a CPython before 3.6, which is not supported",
        [-CPYTHON_TOO_NEW] = "is a CPython after 3.14, which this version of sonde does not know",
        [-CPYTHON_PRERELEASE] = "is an alpha or beta of CPython; use a release",
        [-CPYTHON_DEBUG_BUILD] = "is a debug build of CPython; use a release build",
        [-CPYTHON_FREE_THREADED] =
            "is a free-threaded build of CPython, which is not supported; use one with the GIL",
        [-CPYTHON_NO_RUNTIME] = "is a CPython whose threads cannot be found: its symbols are gone",
        [-CPYTHON_DAMAGED] = "holds what no CPython of its version can hold",
        [-CPYTHON_UNREADABLE] = "cannot be read",
        [-CPYTHON_ABSENT] = "does not have it",
    };
    size_t i = (size_t) - (long)fault;
    return i < sizeof(text) / sizeof(text[0]) ? text[i] : "failed in an unknown way";
}

static uint64_t symbol_of(const struct cpython_module *module, const char *name)
{
    uint64_t address = 0;
    return module->symbol(module->ctx, name, &address) ? address : 0;
}

static int check_kind(const struct cpython_module *module, const struct version *version)
{
    if (version->major != 3 || version->minor < LAYOUT_MINOR_FIRST)
        return CPYTHON_TOO_OLD;
    if (version->minor > LAYOUT_MINOR_LAST)
        return CPYTHON_TOO_NEW;
    if (version->prerelease)
        return CPYTHON_PRERELEASE;
    if (symbol_of(module, "_Py_NegativeRefcount") || version_path_has(module->path, 'd'))
        return CPYTHON_DEBUG_BUILD;
    return version_path_has(module->path, 't') ? CPYTHON_FREE_THREADED : CPYTHON_OK;
}

/* 3.6 has no _PyRuntime: the head of the list is static, and nothing names it in a stripped binary
 * but "mov interp_head(%rip), %rax; ret", which is all of PyInterpreterState_Head. */
static int find_static(struct cpython *py, const struct cpython_module *module,
                       const struct cpython_memory *memory)
{
    uint8_t code[12];
    uint64_t function = symbol_of(module, "PyInterpreterState_Head");
    py->current = symbol_of(module, "_PyThreadState_Current");
    py->interpreters = symbol_of(module, "interp_head");
    if (!py->interpreters && function && memory_read(memory, function, code, sizeof(code))) {
        size_t at = !memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0; /* endbr64 */
        if (!memcmp(code + at, "\x48\x8b\x05", 3) && code[at + 7] == 0xc3)
            py->interpreters =
                function + at + 7 + (uint64_t)(int64_t)(int32_t)half_of(code, (uint32_t)at + 3);
    }
    return py->current && py->interpreters ? CPYTHON_OK : CPYTHON_NO_RUNTIME;
}

static int find_runtime(struct cpython *py, const struct cpython_module *module,
                        const struct cpython_memory *memory)
{
    py->runtime = symbol_of(module, "_PyRuntime");
    if (py->layout.runtime_head == LAYOUT_ABSENT)
        return find_static(py, module, memory);
    if (!py->runtime)
        return CPYTHON_NO_RUNTIME;
    if (py->minor >= 13) {
        int fault = describe_read(py->runtime, memory, &py->layout);
        if (fault)
            return fault;
    }
    py->interpreters = py->runtime + py->layout.runtime_head;
    if (py->layout.runtime_current != LAYOUT_ABSENT)
        py->current = py->runtime + py->layout.runtime_current;
    return CPYTHON_OK;
}

int cpython_open(struct cpython *py, const struct cpython_module *module,
                 const struct cpython_memory *memory)
{
    struct version version;
    *py = (struct cpython){.eval = symbol_of(module, "_PyEval_EvalFrameDefault")};
    /* 2.7 and 3.5 have no such function, but are worth a better answer than "not Python". */
    if (!py->eval && !symbol_of(module, "PyEval_EvalFrameEx"))
        return CPYTHON_NOT_PYTHON;
    int fault = version_find(module, memory, &version);
    if (!fault)
        fault = check_kind(module, &version);
    if (fault)
        return fault;
    const struct layout *layout = layout_find(version.minor, version.micro);
    if (!layout)
        return CPYTHON_TOO_NEW;
    py->major = version.major;
    py->minor = version.minor;
    py->micro = version.micro;
    py->layout = *layout;
    py->this_thread = symbol_of(module, "PyGILState_GetThisThreadState");
    py->code_type = symbol_of(module, "PyCode_Type");
    py->frame_type = symbol_of(module, "PyFrame_Type");
    py->long_type = symbol_of(module, "PyLong_Type");
    fault = find_runtime(py, module, memory);
    py->code_size = layout_code_size(&py->layout);
    return fault;
}

int cpython_thread_key(const struct cpython *py, const struct cpython_memory *memory, uint32_t *key)
{
    uint8_t tss[8]; /* Py_tss_t: int _is_initialized; pthread_key_t _key */
    if (py->layout.runtime_tss == LAYOUT_ABSENT)
        return CPYTHON_ABSENT;
    if (!memory_read(memory, py->runtime + py->layout.runtime_tss, tss, sizeof(tss)))
        return CPYTHON_UNREADABLE;
    if (half_of(tss, 0) != 1)
        return CPYTHON_ABSENT;
    *key = half_of(tss, 4);
    return CPYTHON_OK;
}

bool cpython_is_eval(const char *function)
{
    static const char name[] = "_PyEval_EvalFrameDefault";
    return !strncmp(function, name, sizeof(name) - 1) &&
           (function[sizeof(name) - 1] == '\0' || function[sizeof(name) - 1] == '.');
}
