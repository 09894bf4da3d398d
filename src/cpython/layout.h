/*
 * Where CPython keeps what, one row a version: offsets in bytes, on 64-bit Linux. Code that walks
 * asks the row and knows no versions; a new version is a new row. tests/unit/cpython checks each
 * row against the headers of every interpreter that is installed.
 */
#ifndef SONDE_CPYTHON_LAYOUT_H
#define SONDE_CPYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYOUT_ABSENT UINT32_MAX /* this version has no such field */

/* How a line is found from an instruction's offset; see line.c for the formats. */
enum cpython_lines {
    CPYTHON_LINES_LNOTAB,    /* co_lnotab, up to 3.9 */
    CPYTHON_LINES_RANGES,    /* co_linetable of 3.10 */
    CPYTHON_LINES_LOCATIONS, /* co_linetable from 3.11 on */
};

/* Which Python frames start a native call of the interpreter loop. */
enum layout_entry {
    LAYOUT_ENTRY_EACH, /* each frame is a call of its own */
    LAYOUT_ENTRY_FLAG, /* those whose frame.entry byte is set */
    LAYOUT_ENTRY_SHIM, /* those whose caller is a frame that the C stack owns */
};

struct layout_dict {
    uint32_t keys;                         /* dict -> its table */
    uint32_t size, log2_index, kind, used; /* of the table: slots (a word or log2 as a byte) */
    uint32_t indices;
    uint8_t size_is_log2;
};

struct layout {
    uint8_t minor, micro;                            /* the row holds from 3.minor.micro on */
    uint8_t lines, entry;                            /* enum cpython_lines, enum layout_entry */
    uint8_t lasti_scale;                             /* bytes per unit of frame.lasti */
    uint8_t owner_last;                              /* the largest that frame.owner can be */
    uint32_t runtime_head, runtime_current;          /* _PyRuntime: interpreters, GIL's holder */
    uint32_t runtime_tss;                            /* key of this thread's state */
    uint32_t interp_next, interp_id, interp_threads; /* PyInterpreterState */
    uint32_t interp_modules, interp_gil;             /* sys.modules; the GIL, from 3.12 on */
    uint32_t gil_holder, gil_locked;                 /* _gil_runtime_state */
    uint32_t thread_next, thread_interp;             /* PyThreadState */
    uint32_t thread_frame, cframe_frame;             /* the frame, or the _PyCFrame that has it */
    uint32_t cframe_prev;                            /* the _PyCFrame of the call around it */
    uint32_t thread_ident, thread_native;            /* pthread_t; kernel's id */
    uint32_t thread_chunk, thread_top;               /* where its frames lie, from 3.11 on */
    uint32_t chunk_prev, chunk_size, chunk_top;      /* _PyStackChunk */
    uint32_t chunk_data;                             /* ... */
    uint32_t frame_type, frame_back, frame_code;     /* PyFrameObject or _PyInterpreterFrame */
    uint32_t frame_lasti, frame_instr;               /* one of the two: offset or address */
    uint32_t frame_gen, frame_owner, frame_entry;    /* ... */
    uint32_t gen_frame;              /* the frame inside a generator, from 3.11 on */
    uint32_t code_flags, code_first; /* PyCodeObject: co_flags, co_firstlineno */
    uint32_t code_name, code_qualname, code_filename; /* ... */
    uint32_t code_table, code_bytes, code_units;      /* line table; co_code or where it starts */
    uint32_t text_ascii, text_compact;                /* sizes of the two heads of a str */
    struct layout_dict dict;
};

/* What all supported versions have in common. */
enum {
    LAYOUT_TYPE = 8,       /* PyObject.ob_type */
    LAYOUT_SIZE = 16,      /* PyVarObject.ob_size */
    LAYOUT_TYPE_NAME = 24, /* PyTypeObject.tp_name */
    LAYOUT_BYTES = 32,     /* PyBytesObject.ob_sval */
    LAYOUT_TUPLE = 24,     /* PyTupleObject.ob_item */
    LAYOUT_TEXT_LENGTH = 16,
    LAYOUT_TEXT_STATE = 32,
    LAYOUT_MODULE_DICT = 16,
    LAYOUT_LONG_DIGIT = 24,
};

/* The row for 3.minor.micro, or NULL. */
const struct layout *layout_find(unsigned minor, unsigned micro);

/* The oldest and the newest supported 3.x. */
#define LAYOUT_MINOR_FIRST 6
#define LAYOUT_MINOR_LAST 14

/* Whether the offsets fit the buffers that walks read into: what a process says of itself may not.
 */
bool layout_is_sane(const struct layout *layout);

#define LAYOUT_FRAME_MAX 128 /* bytes of a frame, a thread, a code object that are ever read */
#define LAYOUT_THREAD_MAX 512
#define LAYOUT_CODE_MAX 256

/* How many bytes from a frame's start hold all that a walk needs. */
size_t layout_frame_size(const struct layout *layout);
/* ... a thread state's, a code object's. */
size_t layout_thread_size(const struct layout *layout);
size_t layout_code_size(const struct layout *layout);

#endif
