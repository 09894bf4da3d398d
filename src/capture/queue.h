/*
 * Samples that the agents took, on hold until perf's records up to their time have been taken: what
 * a process had mapped, and whether it was there at all, is known from those.
 */
#ifndef SONDE_QUEUE_H
#define SONDE_QUEUE_H

#include "base/vector.h"
#include "capture/python.h"

struct queued {
    uint64_t time, value;
    pid_t pid, tid;
    struct python_stack stack; /* its arrays belong to the sample */
    uint64_t *kernel;          /* innermost first */
    size_t kernel_count;
};

struct queue {
    VECTOR(struct queued *) waiting;
    size_t next;   /* of `waiting`, in order of time up to `sorted` */
    size_t sorted; /* samples at and after this one have not been put in order yet */
};

/* Room for so many frames; fill in the rest, then queue_add. */
struct queued *queue_make(size_t native, size_t python, size_t kernel);
void queue_add(struct queue *q, struct queued *sample);
/* The oldest one before `until`, the caller's from now on (free), or NULL. */
struct queued *queue_take(struct queue *q, uint64_t until);
void queue_release(struct queue *q);

#endif
