/*
 * Compiled by test_layout against the headers of one interpreter, together with
 * src/cpython/layout.c: prints each field of that version's row that is not where the compiler puts
 * it.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x03080000
#include "internal/pycore_pystate.h"
#elif PY_VERSION_HEX >= 0x03070000
#include "internal/pystate.h"
#endif
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#endif
#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_gil.h"
#endif

#include "cpython/layout.h"

static int faults, checks;

static void check(const char *field, uint32_t have, size_t want)
{
    checks++;
    if (have != want) {
        printf("%s is %u, should be %zu\n", field, have, want);
        faults++;
    }
}

#define AT(field, type, member) check(#field, l->field, offsetof(type, member))
#define ABSENT(field) check(#field, l->field, LAYOUT_ABSENT)

static void check_states(const struct layout *l)
{
    AT(interp_next, PyInterpreterState, next);
    AT(thread_next, PyThreadState, next);
    AT(thread_interp, PyThreadState, interp);
    AT(thread_ident, PyThreadState, thread_id);
#if PY_VERSION_HEX < 0x03070000
    ABSENT(runtime_head);
    ABSENT(interp_id);
#else
    AT(runtime_head, _PyRuntimeState, interpreters.head);
    AT(interp_id, PyInterpreterState, id);
#endif
#if PY_VERSION_HEX < 0x030b0000
    AT(interp_threads, PyInterpreterState, tstate_head);
    AT(thread_frame, PyThreadState, frame);
    ABSENT(thread_native);
    ABSENT(thread_chunk);
#else
    AT(interp_threads, PyInterpreterState, threads.head);
    AT(thread_native, PyThreadState, native_thread_id);
    AT(thread_chunk, PyThreadState, datastack_chunk);
    AT(thread_top, PyThreadState, datastack_top);
    AT(chunk_prev, _PyStackChunk, previous);
    AT(chunk_size, _PyStackChunk, size);
    AT(chunk_top, _PyStackChunk, top);
    AT(chunk_data, _PyStackChunk, data);
#endif
#if PY_VERSION_HEX >= 0x030d0000
    AT(thread_frame, PyThreadState, current_frame);
    ABSENT(cframe_frame);
#elif PY_VERSION_HEX >= 0x030b0000
    AT(thread_frame, PyThreadState, cframe);
    AT(cframe_frame, _PyCFrame, current_frame);
    AT(cframe_prev, _PyCFrame, previous);
#endif
}

static void check_gil(const struct layout *l)
{
#if PY_VERSION_HEX < 0x030c0000
    AT(interp_modules, PyInterpreterState, modules);
    ABSENT(interp_gil);
#if PY_VERSION_HEX >= 0x03070000
    AT(runtime_current, _PyRuntimeState, gilstate.tstate_current);
    AT(runtime_tss, _PyRuntimeState, gilstate.autoTSSkey);
#else
    ABSENT(runtime_current);
    ABSENT(runtime_tss);
#endif
#else
    AT(interp_modules, PyInterpreterState, imports.modules);
    AT(runtime_tss, _PyRuntimeState, autoTSSkey);
    ABSENT(runtime_current);
    AT(interp_gil, PyInterpreterState, ceval.gil);
    AT(gil_holder, struct _gil_runtime_state, last_holder);
    AT(gil_locked, struct _gil_runtime_state, locked);
#endif
}

static void check_frames(const struct layout *l)
{
#if PY_VERSION_HEX < 0x030b0000
    AT(frame_type, PyFrameObject, ob_base.ob_base.ob_type);
    AT(frame_back, PyFrameObject, f_back);
    AT(frame_code, PyFrameObject, f_code);
    AT(frame_lasti, PyFrameObject, f_lasti);
    AT(frame_gen, PyFrameObject, f_gen);
    ABSENT(frame_instr);
    ABSENT(frame_owner);
#else
    AT(frame_back, _PyInterpreterFrame, previous);
    AT(frame_owner, _PyInterpreterFrame, owner);
    AT(gen_frame, PyGenObject, gi_iframe);
    ABSENT(frame_lasti);
    ABSENT(frame_gen);
#if PY_VERSION_HEX < 0x030d0000
    AT(frame_code, _PyInterpreterFrame, f_code);
    AT(frame_instr, _PyInterpreterFrame, prev_instr);
#else
    AT(frame_code, _PyInterpreterFrame, f_executable);
    AT(frame_instr, _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX < 0x030c0000
    AT(frame_entry, _PyInterpreterFrame, is_entry);
#else
    ABSENT(frame_entry);
#endif
#endif
}

static void check_objects(const struct layout *l)
{
    AT(code_flags, PyCodeObject, co_flags);
    AT(code_first, PyCodeObject, co_firstlineno);
    AT(code_name, PyCodeObject, co_name);
    AT(code_filename, PyCodeObject, co_filename);
#if PY_VERSION_HEX < 0x030a0000
    AT(code_table, PyCodeObject, co_lnotab);
#else
    AT(code_table, PyCodeObject, co_linetable);
#endif
#if PY_VERSION_HEX < 0x030b0000
    AT(code_bytes, PyCodeObject, co_code);
    ABSENT(code_qualname);
#else
    AT(code_qualname, PyCodeObject, co_qualname);
    AT(code_units, PyCodeObject, co_code_adaptive);
    AT(dict.size, struct _dictkeysobject, dk_log2_size);
    AT(dict.log2_index, struct _dictkeysobject, dk_log2_index_bytes);
    AT(dict.kind, struct _dictkeysobject, dk_kind);
    AT(dict.used, struct _dictkeysobject, dk_nentries);
    AT(dict.indices, struct _dictkeysobject, dk_indices);
#endif
    AT(dict.keys, PyDictObject, ma_keys);
    check("text_ascii", l->text_ascii, sizeof(PyASCIIObject));
    check("text_compact", l->text_compact, sizeof(PyCompactUnicodeObject));
    check("LAYOUT_TYPE", LAYOUT_TYPE, offsetof(PyObject, ob_type));
    check("LAYOUT_SIZE", LAYOUT_SIZE, offsetof(PyVarObject, ob_size));
    check("LAYOUT_TYPE_NAME", LAYOUT_TYPE_NAME, offsetof(PyTypeObject, tp_name));
    check("LAYOUT_BYTES", LAYOUT_BYTES, offsetof(PyBytesObject, ob_sval));
    check("LAYOUT_TEXT_LENGTH", LAYOUT_TEXT_LENGTH, offsetof(PyASCIIObject, length));
    check("LAYOUT_TEXT_STATE", LAYOUT_TEXT_STATE, offsetof(PyASCIIObject, state));
}

int main(void)
{
    const struct layout *l = layout_find(PY_MINOR_VERSION, PY_MICRO_VERSION);
    if (!l) {
        printf("no row for %s\n", PY_VERSION);
        return 1;
    }
    check_states(l);
    check_gil(l);
    check_frames(l);
    check_objects(l);
    printf("%s: %d offsets checked, %d wrong\n", PY_VERSION, checks, faults);
    return faults != 0;
}
