/* See interpreter.h. */
#include "profile/interpreter.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* By name, or by how a name begins (a final *). CPython 3.6 to 3.13. */
static const char *const ways[] = {
    "PyCFunction_Call",
    "PyEval_EvalCode*",
    "PyEval_EvalFrame*",
    "PyIter_Next",
    "PyObject_Call",
    "PyObject_CallFunction*",
    "PyObject_CallMethod*",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall*",
    "PyVectorcall_Call",
    "_PyCFunction_FastCall*",
    "_PyEval_EvalCode*",
    "_PyEval_EvalFrame*",
    "_PyEval_Vector",
    "_PyFunction_FastCall*",
    "_PyFunction_Vectorcall",
    "_PyMethodDef_RawFastCall*",
    "_PyMethodDescr_*",
    "_PyObject_Call*",
    "_PyObject_FastCall*",
    "_PyObject_MakeTpCall",
    "_PyObject_Vectorcall*",
    "_PyVectorcall_Call",
    "_Py_EvalFrame*",
    "call_function",
    "cfunction_call*",
    "cfunction_vectorcall_*",
    "do_call_core",
    "fast_function",
    "function_code_fastcall",
    "function_call",
    "gen_iternext",
    "gen_send_ex*",
    "method_call",
    "method_vectorcall*",
    "object_vacall",
    "slot_tp_call",
    "slot_tp_init",
    "trace_call_function",
    "type_call",
    "vectorcall_maybe",
    "vectorcall_method",
};

/* The agent's own, around each frame that is traced. */
static const char *const agent_ways[] = {"on_eval",   "on_eval_old", "run_frame", "run_plain",
                                         "run_apart", "run_chosen",  "eval_frame"};

static bool matches(const char *name, const char *way)
{
    size_t len = strlen(way);
    return way[len - 1] == '*' ? !strncmp(name, way, len - 1) : !strcmp(name, way);
}

static bool is_one_of(const char *name, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (matches(name, list[i]))
            return true;
    return false;
}

enum interpreter_way interpreter_way(const char *name, const char *module)
{
    if (is_one_of(name, ways, sizeof ways / sizeof *ways))
        return WAY_IN_PYTHON;
    return !strcmp(module, "libsonde.so") &&
                   is_one_of(name, agent_ways, sizeof agent_ways / sizeof *agent_ways)
               ? WAY_ANYWHERE
               : WAY_NONE;
}

static enum interpreter_way way_of(const struct profile *p, const struct profile_function *f)
{
    if (p->modules.data[f->module].kind != CODE_ELF)
        return WAY_NONE;
    return interpreter_way(profile_text(p, f->name), profile_module_name(p, f->module));
}

/* With all that was inlined into it. */
static uint8_t way_of_frame(const struct profile *p, const uint8_t *way,
                            const struct profile_frame *f)
{
    uint8_t least = f->location_count ? WAY_ANYWHERE : WAY_NONE;
    for (uint32_t i = 0; i < f->location_count; i++) {
        uint8_t one = way[p->locations.data[f->first_location + i].function];
        least = one < least ? one : least;
    }
    return least;
}

static bool has_python(const struct profile *p)
{
    for (size_t i = 0; i < p->modules.len; i++)
        if (p->modules.data[i].kind == CODE_PYTHON)
            return true;
    return false;
}

void profile_hide_interpreter(struct profile *p)
{
    if (!has_python(p))
        return;
    uint8_t *way = memory_array(p->functions.len + 1, sizeof *way);
    uint8_t *hidden = memory_array(p->frames.len + 1, sizeof *hidden);
    bool *inside = memory_array(p->stacks.len + 1, sizeof *inside); /* under a Python frame */
    uint32_t *shown = memory_array(p->stacks.len + 1, sizeof *shown);
    for (size_t i = 0; i < p->functions.len; i++)
        way[i] = (uint8_t)way_of(p, &p->functions.data[i]);
    for (size_t i = 0; i < p->frames.len; i++)
        hidden[i] = way_of_frame(p, way, &p->frames.data[i]);
    /* A parent comes before its children. */
    for (uint32_t i = 1; i < p->stacks.len; i++) {
        struct profile_stack *s = &p->stacks.data[i];
        uint32_t module = p->frames.data[s->frame].module;
        bool under = inside[s->parent];
        inside[i] = under || p->modules.data[module].kind == CODE_PYTHON;
        s->parent = shown[s->parent];
        shown[i] = hidden[s->frame] > (under ? WAY_NONE : WAY_IN_PYTHON) ? s->parent : i;
    }
    free(way);
    free(hidden);
    free(inside);
    free(shown);
}
