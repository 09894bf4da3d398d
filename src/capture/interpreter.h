/*
 * The Python interpreter of a process, read from outside: nothing is put into the process and it is
 * not stopped, so what is read is checked and given up when the process moved on meanwhile. Answers
 * who its threads are, what they are called and where they stand, in the recording's words.
 */
#ifndef SONDE_INTERPRETER_H
#define SONDE_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/frame_copies.h"
#include "capture/module.h"
#include "capture/python.h"
#include "capture/space.h"

struct interpreter;

/* What was learned of modules, over all processes. Zeroed at first. */
struct interpreter_modules {
    struct map by_module; /* -> struct elf_names, 0: no interpreter in it */
};
void interpreter_modules_release(struct interpreter_modules *m);

/* The interpreter among what the process has mapped, or NULL. *fault is set to why one that is
 * there cannot be read, else to 0. */
struct interpreter *interpreter_open(struct interpreter_modules *known, struct writer *writer,
                                     struct modules *modules, pid_t pid, const struct space *space,
                                     int *fault);
void interpreter_free(struct interpreter *i); /* NULL-safe */

/* One thread's Python frames, innermost first; they hold until the next walk. */
struct interpreter_stack {
    size_t count;
    uint32_t *frame; /* in the recording */
    uint32_t *flags; /* enum of cpython.h */
    bool whole;
    bool gil; /* it held the lock */
};

enum interpreter_answer {
    INTERPRETER_READ,
    INTERPRETER_NONE,     /* not a thread of Python's, or one that runs no Python */
    INTERPRETER_REJECTED, /* it moved on, or what was found cannot be */
};

#define INTERPRETER_LATE 50000000ull /* a stack read so many ns after its sample is another's */

enum interpreter_answer interpreter_walk(struct interpreter *i, pid_t tid,
                                         struct interpreter_stack *out);

/* How the kernel finds the thread's frames; false if it is not a thread of Python's. */
bool interpreter_plan(struct interpreter *i, pid_t tid, struct frame_plan *plan);
/* The same as interpreter_walk on what the kernel copied, and beyond its end on the process. */
enum interpreter_answer interpreter_walk_copy(struct interpreter *i, const struct frame_copy *copy,
                                              struct interpreter_stack *out);

/* The interpreter loop. */
void interpreter_loop(const struct interpreter *i, uint64_t *start, uint64_t *end);

/* Which thread holds the lock now; 0: none, or it is not known. */
pid_t interpreter_holder(struct interpreter *i);
/* Whether a futex at this address is the lock. */
bool interpreter_is_lock(struct interpreter *i, uint64_t address);
/* Who holds the mutex whose futex is at this address, if it is one and somebody does; else 0. */
pid_t interpreter_mutex_holder(struct interpreter *i, uint64_t address);

/* The names of all threads as the threading module knows them. */
void interpreter_names(struct interpreter *i,
                       void (*each)(void *context, pid_t tid, const char *name), void *context);

#endif
