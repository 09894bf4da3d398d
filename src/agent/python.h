/*
 * The Python interpreter in this process: looked for at start and after dlopen, walked in the
 * sample's handler, where the interrupted thread's frames hold still. What a code object is called
 * is written to the thread's ring when the thread meets it first: a process may be gone before
 * anybody could ask it.
 */
#ifndef SONDE_AGENT_PYTHON_H
#define SONDE_AGENT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "cpython/cpython.h"

#define PYTHON_KNOWN 2048 /* code objects that a thread remembers to have told of */

/* Which code a ring's reader was told of, and room to tell of more. */
struct python_told {
    struct {
        uint64_t code, stamp;
    } known[PYTHON_KNOWN];
    struct cpython_code code;
    uint64_t record[SEGMENT_CODE_WORDS_MAX];
};

/* A thread's memory for this, made at its first sample with Python in it. */
struct python_thread {
    uint32_t generation; /* of the slot whose reader was told of `known` */
    struct cpython_pages pages;
    struct python_told told;
    struct cpython_frame frame[SEGMENT_PYTHON_DEPTH];
    uint64_t kernel[SEGMENT_KERNEL_DEPTH];
    uint64_t body[SEGMENT_DEPTH + 2 * SEGMENT_PYTHON_DEPTH + SEGMENT_KERNEL_DEPTH];
    /* The sample written last, outermost first. */
    size_t last_native, last_python;
    uint64_t last_address[SEGMENT_DEPTH];
    struct cpython_frame last_frame[SEGMENT_PYTHON_DEPTH];
    struct cpython_task task;
};

struct python_found {
    uint32_t ready; /* set last */
    int32_t fault;  /* why it cannot be read */
    uint64_t eval_end;
    uint64_t tasks;             /* asyncio's dict of running ones, once it was found */
    uint32_t looked, look_next; /* samples that could have used it; when to look again */
    struct cpython py;
};
extern struct python_found agent_python;

/* Looks for an interpreter among what the handle of dlopen brought, or what the program started
 * with (NULL). True if there is one, also one that cannot be read. Not for handlers. */
bool python_look(void *handle);

/* Whether the process has an interpreter, readable or not. */
static inline bool python_is_here(void)
{
    return agent_python.ready || agent_python.fault;
}

/* What the collector is told of it. Signal-safe. */
void python_show(struct segment_header *h);

/* The Python frames of the calling thread, interrupted at `sp`; they stand in
 * t->python->frame, and what they are has been told. 0: none. Signal-safe. */
size_t python_walk(struct agent_thread *t, const void *ucontext, uint64_t sp, bool *whole,
                   bool *gil);

/* The stamp of a code object, 0: it is none. *known: the ring's reader knows what it is.
 * Signal-safe.
 */
uint64_t python_stamp(const struct python_told *told, const struct cpython_memory *memory,
                      uint64_t code, bool *known);
/* Makes sure that the ring's reader knows the code object; its stamp, 0: it is none. Signal-safe,
 * as long as nobody who interrupts comes with the same `told`. */
uint64_t python_introduce(struct agent_thread *t, struct python_told *told,
                          const struct cpython_memory *memory, uint64_t code);

/* The sample's body: what of the addresses and the Python frames is not as in the sample before.
 * Fills in s->shared and s->python_shared from s->count and s->python. Signal-safe. */
const uint64_t *python_pack(struct agent_thread *t, struct segment_sample *s, size_t *words);
/* ... it has been written. */
void python_packed(struct agent_thread *t, const struct segment_sample *s);

/* Of the page at `address`; for the memory reader. Signal-safe. */
bool python_probe(uint64_t address);

#endif
