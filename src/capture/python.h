/*
 * Python code as the agents tell of it: each code object becomes a function of the recording, in
 * the module that is its source file, and each place in it a frame with its line. A process keeps
 * what it was told once; a thread knows which address means which, since an address may be used
 * again.
 */
#ifndef SONDE_CAPTURE_PYTHON_H
#define SONDE_CAPTURE_PYTHON_H

#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"
#include "capture/agents.h"
#include "capture/stacks.h"

struct python_code {
    uint32_t module, function; /* in the recording */
    int32_t first_line;
    uint32_t table_size;
    uint8_t *table;
};

struct python_process {
    struct writer *writer;
    pid_t pid;
    uint32_t lines; /* enum cpython_lines */
    uint32_t gone;  /* the frame of code that nobody told of */
    uint64_t gone_count;
    uint64_t samples, news; /* from inside: how many, and pieces of code that were told for them */
    VECTOR(struct python_code) code;
    struct map by_stamp; /* code object and stamp -> index */
    struct map by_end;   /* code object and the end of its stamp -> index; see wire/heap.h */
    struct map frames;   /* index and instruction -> frame in the recording */
    char *folder;        /* what relative paths start from, or NULL */
};

struct python_thread {
    struct map by_address; /* -> index */
};

/* One sample, with names for its Python frames; the native ones are for later, when all mappings
 * up to its time are known. */
struct python_stack {
    uint64_t eval, eval_end; /* the interpreter loop */
    size_t native, interrupted;
    bool native_whole, python_whole;
    size_t python;
    uint64_t *address; /* native, innermost first */
    uint32_t *frame;   /* Python: in the recording */
    uint32_t *flags;   /* enum of cpython.h */
};

struct python_process *python_process_new(struct writer *writer, struct modules *modules,
                                          const struct agents_process *p);
void python_process_free(struct python_process *p); /* NULL-safe */
struct python_thread *python_thread_new(void);
void python_thread_free(struct python_thread *t); /* NULL-safe */

void python_on_code(struct python_process *p, struct python_thread *t, const struct agents_code *c);

/* A function of Python in the recording, and the module that its file is. */
uint32_t python_function(struct python_process *p, const char *name, const char *path,
                         size_t path_len, int32_t first_line, uint32_t *module);

/* The frame for an instruction of the code at `address`. */
uint32_t python_frame(struct python_process *p, const struct python_thread *t, uint64_t address,
                      int32_t instruction);

/* The same, where no thread is known but the end of the stamp. */
uint32_t python_frame_stamped(struct python_process *p, uint64_t address, uint64_t stamp,
                              int32_t instruction);

/* Whether it is known what that code is. */
bool python_knows(const struct python_process *p, uint64_t address, uint64_t stamp);

/* The stack in the recording: Python frames in the place of the interpreter's loop, native ones
 * between them unless `python_only`. */
uint32_t python_stack_of(struct stacks *s, const struct space *space, const struct python_stack *k,
                         bool python_only);

#endif
