/*
 * Reading a CPython interpreter (3.6 to 3.14) from its memory: which version it is, its threads,
 * who holds the GIL, the frames of a thread, and what a code object is called. The same code serves
 * the collector, which reads another process, and the agent, which reads its own in a signal
 * handler: nothing here allocates, locks, prints or calls into Python.
 *
 * The memory is hostile or moving: whatever is read is bounded and checked, chains that cannot be
 * are given up with a reason. Functions return 0 or a negative enum cpython_fault.
 */
#ifndef SONDE_CPYTHON_H
#define SONDE_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cpython/layout.h"

/* ---- memory ---- */

struct cpython_piece {
    uint64_t address;
    void *to;
    size_t size;
};

/* Pages of this process found readable, so that each is tried by a system call but once. Zeroed at
 * first; one per thread, and a signal handler that interrupts a walk must bring another one. */
#define CPYTHON_PAGES 256 /* a power of two */
struct cpython_pages {
    uint64_t page[CPYTHON_PAGES];
    uint32_t walks;
};

/* What a walk of another process read in bulk, and where the last one found its frames, so that the
 * next can ask for all of them at once. Zeroed at first; one per thread that is walked, or shared.
 */
#define CPYTHON_AHEAD_BYTES 16384
#define CPYTHON_AHEAD_FRAMES 62
struct cpython_ahead {
    uint32_t known, read; /* addresses kept; frames read this time */
    uint64_t address[CPYTHON_AHEAD_FRAMES];
    uint8_t frame[CPYTHON_AHEAD_FRAMES][LAYOUT_FRAME_MAX];
    uint8_t bytes[CPYTHON_AHEAD_BYTES];
};

/* A way to read memory. Set it up by one of the two functions below, or with a `read` of your own:
 * it reads the pieces in order and returns how many of them it read whole. */
struct cpython_memory {
    size_t (*read)(void *ctx, const struct cpython_piece *piece, size_t count);
    void *ctx;
    struct cpython_ahead *ahead;     /* or NULL: a call for each frame */
    struct cpython_pages *pages;     /* with read NULL: this process's own memory ... */
    bool (*probe)(uint64_t address); /* ... and how a page of it is tried */
    uint64_t stack_low,
        stack_high; /* with pages: known to be readable, the walked thread's stack */
};

/* This process's own memory, as a signal handler on the walked thread sees it. The stack is
 * [low, high); low is the interrupted stack pointer or less. Unreadable addresses are found by
 * `probe`, never by a fault. */
void cpython_memory_local(struct cpython_memory *memory, struct cpython_pages *pages,
                          bool (*probe)(uint64_t address), uint64_t low, uint64_t high);

/* Whether the eight bytes at `address` can be read; by a system call through libc, errno is kept.
 * The kernel reads a signal set from there before it finds that `how` makes no sense: EFAULT tells
 * what cannot be read, and nothing is changed. Allowed wherever a program may run at all. */
bool cpython_probe(uint64_t address);

/* Another process's memory, by process_vm_readv. `ahead` may be NULL. */
void cpython_memory_remote(struct cpython_memory *memory, pid_t pid, struct cpython_ahead *ahead);

/* ---- recognising an interpreter ---- */

enum cpython_fault {
    CPYTHON_OK = 0,
    CPYTHON_NOT_PYTHON = -1,    /* the module has no interpreter in it */
    CPYTHON_NO_VERSION = -2,    /* an interpreter, but of which version cannot be seen */
    CPYTHON_TOO_OLD = -3,       /* before 3.6 */
    CPYTHON_TOO_NEW = -4,       /* after 3.14 */
    CPYTHON_PRERELEASE = -5,    /* an alpha or beta, whose layout is nobody's */
    CPYTHON_DEBUG_BUILD = -6,   /* built with Py_DEBUG or Py_REF_DEBUG */
    CPYTHON_FREE_THREADED = -7, /* built without a GIL */
    CPYTHON_NO_RUNTIME = -8,    /* the symbols that lead to the threads are missing */
    CPYTHON_DAMAGED = -9,       /* what was read cannot be: hostile, moving, or not Python */
    CPYTHON_UNREADABLE = -10,   /* memory could not be read */
    CPYTHON_ABSENT = -11,       /* what was asked for is not there */
};

/* A sentence's end for a fault: "is a free-threaded build, which ...". Never NULL. */
const char *cpython_fault_text(int fault);

/* A module of a process: an executable or a libpython. `symbol` looks a name up among those that
 * the module defines (.symtab or .dynsym) and gives its address in the process; true if there is
 * one. */
struct cpython_module {
    const char *path; /* or NULL; a last resort for the version */
    bool (*symbol)(void *ctx, const char *name, uint64_t *address);
    void *ctx;
};

/* One interpreter process. Plain data: may be copied, shared, kept in a segment. */
struct cpython {
    uint8_t major, minor, micro; /* micro 255: not known */
    uint64_t runtime;            /* _PyRuntime; 0 in 3.6 */
    uint64_t interpreters;       /* address of the word that points to the first interpreter */
    uint64_t current;            /* ... to the thread that holds the GIL; 0 from 3.12 on */
    uint64_t this_thread; /* PyGILState_GetThisThreadState, safe to call in a handler, or 0 */
    uint64_t eval;        /* _PyEval_EvalFrameDefault */
    uint64_t code_type, frame_type, long_type;
    size_t code_size; /* bytes of a code object that are ever read */
    struct layout layout;
};

/* Whether the module is an interpreter that can be read, and how. The process must be past its
 * dynamic linking, no more. */
int cpython_open(struct cpython *py, const struct cpython_module *module,
                 const struct cpython_memory *memory);

/* The pthread key under which a thread finds its own PyThreadState (3.7 on), or CPYTHON_ABSENT. */
int cpython_thread_key(const struct cpython *py, const struct cpython_memory *memory,
                       uint32_t *key);

/* Whether a native function is the interpreter loop or a part that the compiler split off it. */
bool cpython_is_eval(const char *function);

/* ---- threads ---- */

struct cpython_thread {
    uint64_t state;     /* PyThreadState */
    uint64_t interp;    /* PyInterpreterState ... */
    int64_t interp_id;  /* ... and its number, 0 for the main one */
    uint64_t ident;     /* pthread_t, as threading.get_ident() */
    uint64_t native_id; /* kernel's thread id in the process's namespace; 0 if not known */
    bool has_gil;       /* held the GIL when looked at */
};

/* The threads of all interpreters, at most max of them; returns how many, or a fault when there is
 * nothing to be had. `pid` is the process's id in its own pid namespace (NSpid), to find the
 * kernel's ids where Python does not keep them; 0: do without. */
ssize_t cpython_threads(const struct cpython *py, const struct cpython_memory *memory, pid_t pid,
                        struct cpython_thread *out, size_t max);

/* The names of an interpreter's threads as its threading module knows them, by ident. */
int cpython_thread_names(const struct cpython *py, const struct cpython_memory *memory,
                         uint64_t interp, void (*each)(void *ctx, uint64_t ident, const char *name),
                         void *ctx);

/* The interpreter that a thread belongs to. */
int cpython_interp(const struct cpython *py, const struct cpython_memory *memory, uint64_t state,
                   uint64_t *interp);

/* The thread state that holds the GIL of an interpreter now (0: nobody). `interp` 0 means the first
 * interpreter; before 3.12 all share one GIL. */
int cpython_gil(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                uint64_t *state);

/* ---- frames ---- */

enum {
    CPYTHON_FRAME_ENTRY = 1,     /* outermost one of its call of the interpreter loop */
    CPYTHON_FRAME_GENERATOR = 2, /* of a generator or coroutine: .generator */
    CPYTHON_FRAME_TASK = 4,      /* no frame: the task that runs those before it; see below */
};

struct cpython_frame {
    uint64_t code;      /* PyCodeObject */
    uint64_t generator; /* the generator or coroutine object, or 0 */
    int32_t lasti;      /* offset of its instruction in bytes; negative: not started */
    uint32_t flags;
};

enum cpython_reason {
    CPYTHON_COMPLETE,   /* reached the outermost frame */
    CPYTHON_DEPTH,      /* `max` frames written, there are more */
    CPYTHON_UNREAD,     /* memory could not be read at end.address */
    CPYTHON_CYCLE,      /* frames lead back to themselves, or on for ever */
    CPYTHON_IMPOSSIBLE, /* what lies at end.address is no frame */
    CPYTHON_MOVED,      /* the thread went on meanwhile: what was read may never have been */
};

struct cpython_end {
    enum cpython_reason reason;
    uint64_t address; /* the last frame looked at */
};

/* The frames of a thread, innermost first; returns how many. On another process the innermost is
 * read again at the end, see CPYTHON_MOVED. *end may be NULL. */
size_t cpython_walk(const struct cpython *py, const struct cpython_memory *memory, uint64_t state,
                    struct cpython_frame *out, size_t max, struct cpython_end *end);

/* ---- code objects ---- */

#define CPYTHON_NAME_MAX 256
#define CPYTHON_PATH_MAX 1024

struct cpython_code {
    char name[CPYTHON_NAME_MAX];     /* UTF-8; what does not fit is cut at a character */
    char qualname[CPYTHON_NAME_MAX]; /* 3.11 on; before, the same as name */
    char filename[CPYTHON_PATH_MAX];
    int32_t first_line;
    uint32_t flags;      /* co_flags: see CPYTHON_CODE_* */
    uint64_t table;      /* where the line table's bytes are ... */
    uint32_t table_size; /* ... and how many; 0: no lines to be had */
    uint64_t stamp;      /* changes when another object comes to lie at the same address */
};

enum {
    CPYTHON_CODE_GENERATOR = 0x20,
    CPYTHON_CODE_COROUTINE = 0x80,
    CPYTHON_CODE_ASYNC_GENERATOR = 0x200,
};

/* The stamp alone, by one read, to see whether a known code object is still the same. */
int cpython_code_stamp(const struct cpython *py, const struct cpython_memory *memory, uint64_t code,
                       uint64_t *stamp);
int cpython_code_read(const struct cpython *py, const struct cpython_memory *memory, uint64_t code,
                      struct cpython_code *out);
/* Copies the line table to buffer; its size, CPYTHON_ABSENT when it has more than `size` bytes. */
ssize_t cpython_table_read(const struct cpython_memory *memory, const struct cpython_code *code,
                           void *buffer, size_t size);

#define CPYTHON_LINE_NONE 0 /* the instruction belongs to no line */
#define CPYTHON_LINE_BAD -1 /* the table is damaged or ends before the instruction */

/* The line of the instruction at offset lasti. Pure. */
int32_t cpython_line(enum cpython_lines kind, const void *table, size_t size, int32_t first_line,
                     int32_t lasti);

/* The str object at `address` as UTF-8, with a final NUL, cut to fit; its length or a fault. Lone
 * surrogates become U+FFFD. */
ssize_t cpython_text(const struct cpython *py, const struct cpython_memory *memory,
                     uint64_t address, char *to, size_t size);

/* ---- asyncio ---- */

/* The dict of running tasks that the _asyncio module keeps for an interpreter: to be looked for now
 * and then until found (a few calls of read), then good for ever. Not in 3.6. */
int cpython_tasks(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                  uint64_t *tasks);

struct cpython_task {
    uint64_t task;  /* _asyncio.Task */
    uint32_t frame; /* index of its coroutine among the frames: what it awaits lies before it */
    char name[128]; /* empty in 3.7, and for a name that is no str */
};

/* The task that runs in these frames (all of them, from cpython_walk), or CPYTHON_ABSENT. */
int cpython_task(const struct cpython *py, const struct cpython_memory *memory, uint64_t tasks,
                 const struct cpython_frame *frame, size_t count, struct cpython_task *out);

/* Puts an entry with CPYTHON_FRAME_TASK, whose .code is an odd number made of the task, between its
 * frames and the event loop's; the new count, or the same if there is no room. Pure. */
size_t cpython_task_insert(struct cpython_frame *frame, size_t count, size_t max,
                           const struct cpython_task *task);

/* ---- one stack of both ---- */

struct cpython_mixed {
    bool python;
    uint32_t index; /* into the Python frames or the native addresses */
};

struct cpython_native {
    const uint64_t *address; /* innermost first */
    size_t count;
    bool whole; /* reached the outermost frame */
    bool (*is_eval)(void *ctx, uint64_t address, size_t index);
    void *ctx;
};

/*
 * Puts Python frames in the place of the interpreter loop's native frames, innermost first; returns
 * how many entries, at most max. If both stacks are whole they are matched from the outermost end:
 * a call of the loop that has not pushed its frame yet stays native. Else from the innermost. No
 * frame of either is lost but the loop's own: Python frames without a native place come last. Pure.
 */
size_t cpython_merge(const struct cpython_native *native, const struct cpython_frame *python,
                     size_t count, bool whole, struct cpython_mixed *out, size_t max);

#endif
