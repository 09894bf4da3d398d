/*
 * The records of a recording: what a file holds, and what a live stream sends.
 * docs/FORMAT.md draws each one byte by byte; recording/writer.c encodes them,
 * recording/loader.c decodes them. A record is
 *
 *     varint type | varint length | payload
 *
 * and records stand in blocks (recording/block.h). A reader skips types it does
 * not know. Identifiers are dense, start at 0 for each kind, and are defined before they are used.
 */
#ifndef SONDE_RECORD_H
#define SONDE_RECORD_H

enum record_type {
    RECORD_META = 1,         /* key, value */
    RECORD_STRINGS = 2,      /* string table, a run of it */
    RECORD_EVENT = 3,        /* a kind of value: cpu time, page faults, bytes ... */
    RECORD_PROCESS = 4,      /* a process appears */
    RECORD_PROCESS_EXEC = 5, /* ... runs a program (again) */
    RECORD_PROCESS_END = 6,
    RECORD_THREAD = 7,
    RECORD_THREAD_NAME = 8,
    RECORD_THREAD_END = 9,
    RECORD_MODULE = 10,      /* an object file, the kernel, a JIT's code */
    RECORD_MAPPING = 11,     /* a module in a process's memory */
    RECORD_FRAMES = 12,      /* code locations: module and address, or names */
    RECORD_STACKS = 13,      /* nodes: parent and frame */
    RECORD_SAMPLES = 14,     /* time, thread, stack, value */
    RECORD_FUNCTIONS = 15,   /* names for symbols */
    RECORD_SYMBOLS = 16,     /* frame -> function and line, inlined ones first */
    RECORD_SERIES = 17,      /* a curve is declared */
    RECORD_POINTS = 18,      /* points of it */
    RECORD_LOSS = 19,        /* what was not recorded, and why */
    RECORD_NOTE = 20,        /* a sentence for the reader of the report */
    RECORD_COST = 21,        /* what the profiler used */
    RECORD_END = 22,         /* the recorder finished in order */
    RECORD_MODULE_NOTE = 23, /* why a module has no symbols */
    RECORD_CELLS = 24,       /* sums without times: thread, stack, count, value */
    RECORD_HEAP = 26,        /* a process's heap as a whole */
    RECORD_DETAILS = 40,     /* what a cell of the heap is made of: by size, by thread, by time */
    RECORD_SPANS = 27,       /* calls and the program's own spans: begin, end, marks */
    RECORD_MARK = 28,        /* a moment of the whole session that somebody named */
};

/* Where code comes from. */
enum code_kind {
    CODE_ELF = 0,
    CODE_KERNEL = 1,
    CODE_VDSO = 2,
    CODE_JIT = 3,     /* perf map or jitdump */
    CODE_PYTHON = 4,  /* a source file run by an interpreter */
    CODE_UNKNOWN = 5, /* addresses outside every known mapping */
    CODE_SPAN = 6,    /* names that the program gave: spans and marks */
    CODE_KINDS
};

enum value_unit { UNIT_COUNT = 0, UNIT_NANOSECONDS = 1, UNIT_BYTES = 2, UNIT_KINDS };

enum loss_reason {
    LOSS_RING_FULL = 0,  /* the collector was too slow for the kernel's or the agent's ring */
    LOSS_THROTTLED = 1,  /* the kernel held samples back */
    LOSS_UNREADABLE = 2, /* came, but could not be used */
    LOSS_DISK = 3,       /* could not be written */
    LOSS_STOPPED = 4,    /* the profiler had stopped itself */
    LOSS_REASONS
};

#define DETAIL_SIZE_LAST (16u << 20) /* the class that has all from there on */

/* What the key of a detail means, its count and its value (bytes). */
enum detail_kind {
    DETAIL_SIZE = 0,     /* the least size of a class (the last one is open); allocations, none */
    DETAIL_RELEASED = 1, /* a thread that freed, other than the one that allocated; frees, bytes */
    DETAIL_GREW = 2,     /* until that time, since the one before; allocations, bytes */
    DETAIL_SHRANK = 3,   /* the same; frees, bytes */
    DETAIL_KINDS
};

/* What happens in a run of spans. */
enum span_step {
    SPAN_END = 0,   /* the innermost one that is open ends */
    SPAN_BEGIN = 1, /* a frame follows */
    SPAN_MARK = 2,  /* an instant; a frame follows */
    SPAN_CUT = 3, /* a number follows. Even: what was open is forgotten here, and half of it is how
                     many steps were lost; odd: half of it says which one ends, 0 the innermost */
};

enum note_level { NOTE_INFO = 0, NOTE_WARNING = 1, NOTE_LEVELS };

#endif
