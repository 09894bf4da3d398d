/*
 * Time off the CPU, for --wall: from the switch away to the switch back, with the stack that
 * blocked and the cause as far as the kernel's own functions on it tell.
 */
#ifndef SONDE_OFFCPU_H
#define SONDE_OFFCPU_H

#include <stdint.h>

#include "base/map.h"
#include "base/vector.h"
#include "capture/perf_record.h"
#include "capture/tasks.h"
#include "recording/writer.h"

enum cause { CAUSE_SLEEP, CAUSE_LOCK, CAUSE_IO, CAUSE_CHILD, CAUSE_QUEUE, CAUSE_OTHER, CAUSES };

struct kernel_range {
    uint64_t start, end;
    enum cause cause;
};

struct offcpu {
    struct writer *writer;
    uint32_t event[CAUSES];
    uint32_t gil, held;                 /* events of --waiting, 0 until there is one */
    VECTOR(struct kernel_range) ranges; /* functions that tell a cause, sorted */
};

/* Declares its events and learns where the telling kernel functions are. */
void offcpu_init(struct offcpu *o, struct writer *writer);
void offcpu_release(struct offcpu *o);
/* A thread leaves the CPU with this stack. */
void offcpu_on_sample(struct offcpu *o, struct thread *t, const struct perf_record *r,
                      uint32_t stack);
/* ... to wait for its interpreter's lock; ... for what another thread holds, who stands there. */
void offcpu_on_gil(struct offcpu *o, struct thread *t);
void offcpu_on_holder(struct offcpu *o, struct thread *t, uint32_t holder, uint32_t stack);
/* PERF_SWITCH: away (again, with the word whether it was pushed away) or back. */
void offcpu_on_switch(struct offcpu *o, struct thread *t, const struct perf_record *r);
/* The recording or the thread ends: what is still blocked is counted up to here. */
void offcpu_close(struct offcpu *o, struct thread *t, uint64_t time);

#endif
